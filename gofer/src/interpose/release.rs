//! Which release of `runsc` a file is: by what it says of itself, and by what Go has built into it.

use std::fmt;

/// The day of a release, as in `release-20240729.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release(u32);

impl Release {
    /// By the first line of `runsc --version`, or else by the version of its Go module; none if neither has a date.
    pub(crate) fn of(version: &str, built: Option<&BuildInfo>) -> Option<Self> {
        Self::in_text(version).or_else(|| Self::in_text(built?.module.as_deref()?))
    }

    /// Whether its gofer still has the environment that it was started with when Go counts the CPUs. That of Debian 12
    /// executes itself once more without any; the first release known not to is of 2024.
    pub(crate) fn keeps_environment(self) -> bool {
        self.0 >= 20_240_000
    }

    /// A number of eight digits, or of fourteen with the time of day, that begins as years do.
    fn in_text(text: &str) -> Option<Self> {
        let numbers = text.split(|c: char| !c.is_ascii_digit());
        let date = numbers.filter(|number| matches!(number.len(), 8 | 14)).find(|number| number.starts_with("20"))?;
        date.get(..8)?.parse().ok().map(Self)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the Go linker writes into every executable; `go version -m` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildInfo {
    /// As in `go1.22.1`.
    pub(crate) go: String,
    /// Version of the main module, if it was built as one.
    pub(crate) module: Option<String>,
}

/// Begins at a multiple of 16 bytes, as `debug/buildinfo` has it.
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// The texts follow the header, each after its length. Since Go 1.18.
const INLINE: u8 = 2;

impl BuildInfo {
    /// Of an executable; none if it has none in the format of Go 1.18 and later.
    pub(crate) fn of(file: &[u8]) -> Option<Self> {
        let (lines, _) = file.as_chunks::<16>();
        let at = lines.iter().position(|line| line.starts_with(MAGIC))?;
        if lines[at][15] & INLINE == 0 {
            return None;
        }
        let mut rest = file.get((at + 2) * 16..)?;
        let go = String::from_utf8(text(&mut rest)?.to_vec()).ok()?;
        // Between two marks of 16 bytes, which are no text.
        let modules = text(&mut rest).and_then(|text| text.get(16..text.len().checked_sub(16)?)).unwrap_or_default();
        let modules = String::from_utf8_lossy(modules);
        let main = modules.lines().find_map(|line| line.strip_prefix("mod\t"));
        let module = main.and_then(|main| main.split('\t').nth(1)).map(str::to_owned);
        Some(Self { go, module })
    }
}

/// Takes a text and the varint before it off the front.
fn text<'f>(rest: &mut &'f [u8]) -> Option<&'f [u8]> {
    let mut len = 0_usize;
    for shift in (0..28).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        len |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let (text, after) = rest.split_at_checked(len)?;
            *rest = after;
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_write_a_release_is_read() {
        let of = |text: &str| Release::of(text, None).map(|release| release.0);
        assert_eq!(of("runsc version 0.0~20221219.0"), Some(20221219));
        assert_eq!(of("runsc version release-20260905.0"), Some(20260905));
        assert_eq!(of("runsc version VERSION_MISSING"), None);
        assert_eq!(of("runsc version 123456789"), None);
        let module = Some("v0.0.0-20240729123456-0123456789ab".to_owned());
        let built = BuildInfo { go: "go1.22".into(), module };
        assert_eq!(Release::of("runsc version VERSION_MISSING", Some(&built)), Some(Release(20240729)));
        assert!(Release(20240729).keeps_environment() && !Release(20221219).keeps_environment());
    }

    #[test]
    fn build_information_is_found_at_its_mark_and_garbage_is_none() {
        let modules = b"path\tgvisor.dev/gvisor/runsc\nmod\tgvisor.dev/gvisor\tv0.0.0-20260905\th1:x\n";
        let mut file = vec![0; 48];
        file.extend([MAGIC, &[8, INLINE]].concat());
        file.extend([0; 16]);
        file.extend(b"\x06go1.26");
        file.push(u8::try_from(modules.len() + 32).expect("short"));
        file.extend([&[b'<'; 16], &modules[..], &[b'>'; 16]].concat());
        let built = BuildInfo::of(&file).expect("build information");
        assert_eq!(built, BuildInfo { go: "go1.26".into(), module: Some("v0.0.0-20260905".into()) });
        for len in 0..90 {
            assert!(BuildInfo::of(&file[..len]).is_none_or(|built| built.module.is_none()), "{len} bytes");
        }
        assert!(BuildInfo::of(&[MAGIC, &[8, 0]].concat()).is_none(), "an old format");
    }
}
