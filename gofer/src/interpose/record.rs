//! What the installer knew about the payload, in the padding before it.
//!
//! The length and a magic end the record, so that it is found from the payload's place. No process that `runsc` starts
//! reads it.

use std::path::PathBuf;

use serde_json::{Value, json};

const MAGIC: &[u8] = b"goferrec";

/// What the installer knew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Where the `runsc` was taken from, as an absolute path.
    pub(crate) source: PathBuf,
    /// What `runsc --version` said first.
    pub(crate) version: String,
    /// Of the payload, in hexadecimal.
    pub(crate) sha256: String,
    /// Version of the gofer in the file.
    pub(crate) gofer: String,
}

impl Record {
    /// The record, its length and the magic.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self { source, version, sha256, gofer } = self;
        let source = source.to_string_lossy();
        let value = json!({ "source": source, "version": version, "sha256": sha256, "gofer": gofer });
        let mut bytes = value.to_string().into_bytes();
        bytes.extend((bytes.len() as u64).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    /// The record that ends where `before` ends, if there is one.
    pub(super) fn decode(before: &[u8]) -> Option<Self> {
        let (rest, len) = before.strip_suffix(MAGIC)?.split_last_chunk()?;
        let start = rest.len().checked_sub(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        let value: Value = serde_json::from_slice(rest.get(start..)?).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Self {
            source: text("source")?.into(),
            version: text("version")?,
            sha256: text("sha256")?,
            gofer: text("gofer")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_from_its_end_and_garbage_is_none() {
        let record = Record {
            source: "/usr/bin/runsc".into(),
            version: "runsc version release-20260905.0".into(),
            sha256: "00".repeat(32),
            gofer: "0.1.0".into(),
        };
        let mut file = vec![7; 100];
        file.extend(record.encode());
        assert_eq!(Record::decode(&file), Some(record));
        assert_eq!(Record::decode(&file[..file.len() - 1]), None);
        assert_eq!(Record::decode(&[]), None);
        assert_eq!(Record::decode(&[&u64::MAX.to_le_bytes(), MAGIC].concat()), None);
        assert_eq!(Record::decode(&[b"{}", &2_u64.to_le_bytes()[..], MAGIC].concat()), None);
    }
}
