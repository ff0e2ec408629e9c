//! The address of a depot: `s3://BUCKET/PREFIX` or `file:///DIRECTORY`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a depot is. There is never a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepotAddress {
    /// A bucket of an S3-compatible server, and where in it.
    S3 {
        /// The bucket.
        bucket: String,
        /// What all names in it begin with; empty for none.
        prefix: String,
    },
    /// A directory that all machines see, such as one on a network drive.
    Directory(PathBuf),
}

/// A text that is not the address of a depot.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("shared objects are in `s3://BUCKET/PREFIX` or `file:///DIRECTORY`")]
pub struct DepotAddressError;

impl FromStr for DepotAddress {
    type Err = DepotAddressError;

    fn from_str(text: &str) -> Result<Self, DepotAddressError> {
        if let Some(path) = text.strip_prefix("file://") {
            return match path.starts_with('/') && path.len() > 1 {
                true => Ok(Self::Directory(path.into())),
                false => Err(DepotAddressError),
            };
        }
        let rest = text.strip_prefix("s3://").ok_or(DepotAddressError)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let segment =
            |part: &str| part.chars().all(plain) && !part.is_empty() && part != "." && part != "..";
        if !segment(bucket) || !(prefix.is_empty() || prefix.split('/').all(segment)) {
            return Err(DepotAddressError);
        }
        Ok(Self::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for DepotAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
            Self::Directory(path) => write!(f, "file://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_09_a_bucket_or_a_directory_is_named() {
        for (text, shown) in [
            ("s3://team", "s3://team"),
            ("s3://team/", "s3://team"),
            ("s3://team/a/b-1", "s3://team/a/b-1"),
            ("file:///srv/objects", "file:///srv/objects"),
        ] {
            let address: DepotAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
        }
        for text in [
            "",
            "s3:",
            "s3://",
            "s3:///a",
            "s3://a//b",
            "s3://a/../b",
            "s3://key:secret@a/b",
            "file://",
            "file:///",
            "file://host/dir",
            "/srv/objects",
            "gs://a",
            "s3://a/b?c",
        ] {
            assert_eq!(
                text.parse::<DepotAddress>(),
                Err(DepotAddressError),
                "{text}"
            );
        }
    }
}
