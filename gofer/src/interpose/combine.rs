//! The combined file as bytes: making one, and finding the parts of one.

use std::ops::Range;

use gofer_early::elf::{PAGE, PF_R, PT_LOAD, PT_NOTE, Segment, page_ceil};
use gofer_early::{Mode, Options};

use super::elf;
use super::record::Record;

/// Distance between our last segment and the payload, so that running off our data faults.
const GAP: u64 = 0x1_0000;

/// Where a combined file has what.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) options: Options,
    /// None if the file is older than records.
    pub(crate) record: Option<Record>,
    payload: Range<usize>,
    /// The option byte.
    option: usize,
}

impl Parts {
    /// The parts of a combined file; none of any other.
    pub(crate) fn of(file: &[u8]) -> Option<Self> {
        let header = elf::header(file)?;
        let segments = elf::segments(file)?;
        let marked = |segment: &Segment| segment.kind == PT_LOAD && Options::of(segment.paddr).is_some();
        let number = segments.iter().position(marked)?;
        let segment = &segments[number];
        let start = usize::try_from(segment.offset).ok()?;
        let payload = start..start.checked_add(usize::try_from(segment.filesz).ok()?)?;
        if payload.is_empty() || payload.end > file.len() {
            return None;
        }
        // p_paddr is the fourth field, at 24; the option byte is its last.
        let option = elf::place(&header, u16::try_from(number).ok()?)? + 24 + 7;
        let record = Record::decode(&file[..start]);
        Some(Self { options: Options::of(segment.paddr)?, record, payload, option })
    }

    /// The `runsc` in it.
    pub(crate) fn payload<'f>(&self, file: &'f [u8]) -> &'f [u8] {
        &file[self.payload.clone()]
    }

    /// Where the option byte is, and what it has to be for this mode.
    pub(crate) fn switched(&self, mode: Mode) -> (usize, u8) {
        let [.., byte] = Options { mode, ..self.options }.marked().to_le_bytes();
        (self.option, byte)
    }
}

/// Whether a file bears the mark, be the payload there or stripped off.
pub(crate) fn is_combined(file: &[u8]) -> bool {
    elf::segments(file).is_some_and(|segments| segments.iter().any(|segment| Options::of(segment.paddr).is_some()))
}

/// Appends record and payload to `shim`, and turns a spare `PT_NOTE` header into the read-only `PT_LOAD` that covers the
/// payload.
///
/// # Errors
/// What this program lacks, to follow its name.
pub(crate) fn combine(
    mut shim: Vec<u8>,
    payload: &[u8],
    options: Options,
    record: &Record,
) -> Result<Vec<u8>, &'static str> {
    const UNREADABLE: &str = "cannot be read as an ELF file";
    let header = elf::header(&shim).ok_or(UNREADABLE)?;
    let segments = elf::segments(&shim).ok_or(UNREADABLE)?;
    let last = segments.iter().rposition(|segment| segment.kind == PT_LOAD).ok_or(UNREADABLE)?;
    // Loadable headers must stay in ascending order of address, and the payload gets the highest.
    let after = segments[last..].iter().position(|segment| segment.kind == PT_NOTE);
    let spare = last + after.ok_or("was linked without a program header to spare")?;
    let at = u16::try_from(spare).ok().and_then(|spare| elf::place(&header, spare)).ok_or(UNREADABLE)?;
    let loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let top = loaded.map(|segment| page_ceil(segment.vaddr + segment.memsz)).max().unwrap_or_default();

    let record = record.encode();
    let start = (shim.len() + record.len()).next_multiple_of(4096);
    let len = payload.len() as u64;
    let segment = Segment {
        kind: PT_LOAD,
        flags: PF_R,
        offset: start as u64,
        vaddr: top + GAP,
        paddr: options.marked(),
        filesz: len,
        memsz: len,
        align: PAGE,
    };
    let bytes = elf::encode(&segment);
    shim[at..at + bytes.len()].copy_from_slice(&bytes);
    shim.reserve_exact(start - shim.len() + payload.len());
    shim.resize(start - record.len(), 0);
    shim.extend(record);
    shim.extend_from_slice(payload);
    Ok(shim)
}

#[cfg(test)]
mod tests {
    use gofer_early::OnUnknown;

    use super::*;

    #[test]
    fn a_payload_comes_back_and_a_switch_changes_the_mode_alone() {
        let shim = std::fs::read("/proc/self/exe").expect("this test");
        let record = Record {
            source: "a".into(),
            version: "b".into(),
            sha256: "c".into(),
            gofer: env!("CARGO_PKG_VERSION").into(),
        };
        let options = Options { mode: Mode::Ours, on_unknown: OnUnknown::Fail };
        assert!(Parts::of(&shim).is_none() && !is_combined(&shim));
        let mut file = combine(shim, b"payload", options, &record).expect("combined");
        let parts = Parts::of(&file).expect("parts");
        assert_eq!(parts.payload(&file), b"payload");
        assert_eq!((parts.options, parts.record.as_ref()), (options, Some(&record)));
        let (at, byte) = parts.switched(Mode::StockCapped);
        file[at] = byte;
        let switched = Parts::of(&file).expect("parts");
        assert_eq!(switched.options, Options { mode: Mode::StockCapped, ..options });
        assert_eq!(switched.payload(&file), b"payload");
        file.truncate(file.len() - 1);
        assert!(Parts::of(&file).is_none() && is_combined(&file), "a truncated one has no parts but the mark");
    }
}
