//! A node's name, without an allocation of its own where it is short: most are, and there may be a million.

use crate::host::FileName;

/// Longest name that is kept in place. Larger would enlarge the node beyond one allocation class.
const IN_PLACE: usize = 38;

/// A checked name that its owner keeps.
#[derive(Debug)]
pub(super) enum StoredName {
    Short { len: u8, bytes: [u8; IN_PLACE] },
    Long(Box<[u8]>),
}

impl StoredName {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

impl From<FileName<'_>> for StoredName {
    fn from(name: FileName<'_>) -> Self {
        let name = name.as_bytes();
        let mut bytes = [0; IN_PLACE];
        match (bytes.get_mut(..name.len()), u8::try_from(name.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(name);
                Self::Short { len, bytes }
            }
            _ => Self::Long(name.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_come_back() {
        for len in 1..300 {
            let name = vec![b'x'; len];
            let stored = StoredName::from(FileName::new(&name).expect("a safe name"));
            assert_eq!(stored.as_bytes(), name);
        }
        assert_eq!(size_of::<StoredName>(), 40);
    }
}
