//! Files that somebody else may have put there, such as an agent in its workspace.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file to read it. What stands in its place is an error: a pipe would be waited
/// for, and a device has no end.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        let reason = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let reason = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let reason = format!("it is not UTF-8: {}", error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write files of others")]

    use super::*;

    #[test]
    fn su_07_what_is_no_file_is_neither_waited_for_nor_read_without_end() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name);
        std::fs::write(at("file"), "four").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        assert_eq!(read(&at("file"), 4).unwrap(), b"four");
        let kind = |name: &str, most| read(&at(name), most).unwrap_err().kind();
        assert_eq!(kind("file", 3), io::ErrorKind::FileTooLarge);
        assert_eq!(kind("pipe", 4), io::ErrorKind::InvalidInput);
        assert_eq!(kind("zero", 4), io::ErrorKind::InvalidInput);
        assert_eq!(kind(".", 4), io::ErrorKind::IsADirectory);
        assert_eq!(kind("none", 4), io::ErrorKind::NotFound);
    }
}
