//! The bytes of a request and of its answer.
//!
//! ```text
//! request   "SPFENCE" version:u8 length:u32 body        (with four descriptors)
//! body      arguments directory variables
//!           arguments  count:u32 field*
//!           directory  field
//!           variables  count:u32 (field field)*
//! field     length:u32 bytes
//! answer    kind:u8 value:u8
//! ```
//!
//! Numbers are little-endian. Only what is there is ever allocated for: a length
//! that lies costs nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::FenceError;

/// Arguments may take this much, as much as the kernel gives a new process.
pub(crate) const ARGUMENTS_LIMIT: usize = 2 << 20;
/// Variables may take this much.
pub(crate) const VARIABLES_LIMIT: usize = 1 << 20;
/// What a body may take at all.
pub(crate) const BODY_LIMIT: usize = ARGUMENTS_LIMIT + VARIABLES_LIMIT + (64 << 10);
/// What goes before the body.
pub(crate) const HEAD: usize = MAGIC.len() + 1 + 4;

const MAGIC: [u8; 7] = *b"SPFENCE";
const VERSION: u8 = 1;

/// Why a call was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallRefusal {
    /// These are not the bytes of a request.
    #[error("the request cannot be read")]
    Malformed,
    /// Another version of this program asks.
    #[error("it is another version of safepoint")]
    Version,
    /// More than may be asked at once.
    #[error("the request is too large")]
    TooLarge,
    /// Another user asks.
    #[error("it belongs to another user")]
    User,
    /// The path of the working directory is not where the descriptor is.
    #[error("the working directory is not where it is said to be")]
    Directory,
    /// The handler broke down.
    #[error("it failed inside")]
    Failed,
}

/// Every refusal and its number, which never changes.
const REFUSALS: [(CallRefusal, u8); 6] = [
    (CallRefusal::Malformed, 1),
    (CallRefusal::Version, 2),
    (CallRefusal::TooLarge, 3),
    (CallRefusal::User, 4),
    (CallRefusal::Directory, 5),
    (CallRefusal::Failed, 6),
];

/// What a request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Exit(u8),
    Refused(CallRefusal),
}

impl Answer {
    pub(crate) fn encode(self) -> [u8; 2] {
        match self {
            Self::Exit(code) => [0, code],
            Self::Refused(refusal) => {
                let known = REFUSALS.iter().find(|(one, _)| *one == refusal);
                [1, known.map_or(0, |(_, number)| *number)]
            }
        }
    }

    pub(crate) fn decode(bytes: [u8; 2]) -> Option<Self> {
        match bytes {
            [0, code] => Some(Self::Exit(code)),
            [1, number] => {
                let known = REFUSALS.iter().find(|(_, one)| *one == number);
                known.map(|(refusal, _)| Self::Refused(*refusal))
            }
            _ => None,
        }
    }
}

/// A whole request, or why it is too large to be one.
pub(crate) fn encode(
    arguments: &[OsString],
    directory: &Path,
    variables: &[(OsString, OsString)],
) -> Result<Vec<u8>, FenceError> {
    let mut body = Vec::new();
    put_number(&mut body, arguments.len());
    for argument in arguments {
        put(&mut body, argument);
    }
    within("arguments", body.len(), ARGUMENTS_LIMIT)?;
    put(&mut body, directory.as_os_str());
    let before = body.len();
    put_number(&mut body, variables.len());
    for (name, value) in variables {
        put(&mut body, name);
        put(&mut body, value);
    }
    within("variables", body.len() - before, VARIABLES_LIMIT)?;
    within("arguments and variables", body.len(), BODY_LIMIT)?;
    let mut request = MAGIC.to_vec();
    request.push(VERSION);
    put_number(&mut request, body.len());
    request.append(&mut body);
    Ok(request)
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<(), FenceError> {
    if size > limit {
        return Err(FenceError::TooLarge { what, size, limit });
    }
    Ok(())
}

/// A number that is too large is caught by the limits: those are smaller.
fn put_number(into: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    into.extend_from_slice(&number.to_le_bytes());
}

fn put(into: &mut Vec<u8>, field: &OsStr) {
    put_number(into, field.len());
    into.extend_from_slice(field.as_bytes());
}

/// How long the body is that follows this head.
pub(crate) fn body_length(head: &[u8; HEAD]) -> Result<usize, CallRefusal> {
    let mut head = Reader(head);
    if head.take(MAGIC.len())? != MAGIC {
        return Err(CallRefusal::Malformed);
    }
    if head.take(1)? != [VERSION] {
        return Err(CallRefusal::Version);
    }
    match head.number()? {
        length if length > BODY_LIMIT => Err(CallRefusal::TooLarge),
        length => Ok(length),
    }
}

/// What a body says. It must say it to its last byte.
pub(crate) fn decode(body: &[u8]) -> Result<Request, CallRefusal> {
    let mut body = Reader(body);
    let mut arguments = Vec::new();
    for _ in 0..body.number()? {
        arguments.push(body.field()?);
    }
    let directory = PathBuf::from(body.field()?);
    let mut variables = Vec::new();
    for _ in 0..body.number()? {
        variables.push((body.field()?, body.field()?));
    }
    if !body.0.is_empty() {
        return Err(CallRefusal::Malformed);
    }
    Ok(Request {
        arguments,
        directory,
        variables,
    })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], CallRefusal> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or(CallRefusal::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, CallRefusal> {
        let (number, rest) = self.0.split_first_chunk().ok_or(CallRefusal::Malformed)?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*number)).map_err(|_| CallRefusal::TooLarge)
    }

    /// No argument, path or variable can hold a zero byte.
    fn field(&mut self) -> Result<OsString, CallRefusal> {
        let length = self.number()?;
        let bytes = self.take(length)?;
        if bytes.contains(&0) {
            return Err(CallRefusal::Malformed);
        }
        Ok(OsString::from_vec(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            arguments: vec![
                "exec".into(),
                OsString::from_vec(vec![0xff, b'\n']),
                "".into(),
            ],
            directory: "/work place".into(),
            variables: vec![("A".into(), "1=2".into()), ("B".into(), "".into())],
        }
    }

    fn encoded(request: &Request) -> Vec<u8> {
        encode(&request.arguments, &request.directory, &request.variables).unwrap()
    }

    fn decoded(bytes: &[u8]) -> Result<Request, CallRefusal> {
        let (head, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(body_length(head)?, body.len());
        decode(body)
    }

    #[test]
    fn requests_come_back_as_they_were() {
        assert_eq!(decoded(&encoded(&request())), Ok(request()));
    }

    #[test]
    fn no_part_of_a_request_is_a_request() {
        let bytes = encoded(&request());
        for end in HEAD..bytes.len() {
            assert_eq!(
                decode(&bytes[HEAD..end]),
                Err(CallRefusal::Malformed),
                "{end}"
            );
        }
        let mut more = bytes.clone();
        more.push(0);
        assert_eq!(decode(&more[HEAD..]), Err(CallRefusal::Malformed));
    }

    #[test]
    fn a_head_is_checked_before_its_length() {
        let good: [u8; HEAD] = *encoded(&request()).first_chunk().unwrap();
        let with = |place: usize, byte: u8| {
            let mut head = good;
            head[place] = byte;
            body_length(&head)
        };
        assert!(body_length(&good).is_ok());
        assert_eq!(with(0, b'X'), Err(CallRefusal::Malformed));
        assert_eq!(with(7, 2), Err(CallRefusal::Version));
        assert_eq!(with(11, 0x7f), Err(CallRefusal::TooLarge));
    }

    #[test]
    fn lengths_that_lie_allocate_nothing_and_zero_bytes_are_refused() {
        let huge = u32::MAX.to_le_bytes();
        assert_eq!(decode(&huge), Err(CallRefusal::Malformed));
        let zero = [&1u32.to_le_bytes()[..], &1u32.to_le_bytes(), &[0]].concat();
        assert_eq!(decode(&zero), Err(CallRefusal::Malformed));
    }

    #[test]
    fn what_is_too_large_is_not_sent() {
        let argument = OsString::from("x".repeat(ARGUMENTS_LIMIT));
        let result = encode(&[argument], Path::new("/"), &[]);
        assert!(matches!(
            result,
            Err(FenceError::TooLarge {
                what: "arguments",
                ..
            })
        ));
        let argument = OsString::from("x".repeat(ARGUMENTS_LIMIT - 8));
        assert!(encode(&[argument], Path::new("/"), &[]).is_ok());
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let refusals = REFUSALS.map(|(refusal, _)| Answer::Refused(refusal));
        for answer in [Answer::Exit(0), Answer::Exit(255)]
            .into_iter()
            .chain(refusals)
        {
            assert_eq!(Answer::decode(answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode([1, 0]), None);
        assert_eq!(Answer::decode([2, 0]), None);
    }
}
