//! Whether a `runsc` can be a payload: what the code before libc relies on, because it could only die.

use gofer_early::elf::{
    EM_X86_64, ET_EXEC, PAGE, PF_W, PF_X, PT_GNU_STACK, PT_INTERP, PT_LOAD, Segment, page_ceil, page_floor,
};

use super::elf;

/// As many program headers as the code before libc has room for.
const MAX_SEGMENTS: usize = 32;

/// Position-independent code, and shared objects; not among what the code before libc knows.
const ET_DYN: u16 = 3;

/// Takes a static executable at a fixed address, whose segments lie in the file as in memory and share no page of it, so
/// that pages can be moved instead of copied.
///
/// # Errors
/// What it is instead, to follow the file's name.
pub(crate) fn check(image: &[u8]) -> Result<(), &'static str> {
    let header = elf::header(image).ok_or("is not a 64-bit little-endian ELF file")?;
    if header.machine != EM_X86_64 {
        return Err("is built for another architecture than x86-64");
    }
    let segments = elf::segments(image).ok_or("ends within its program headers, or they are of another size")?;
    // Before the kind: what has a loader is mostly position-independent as well, and this is the reason to name.
    if segments.iter().any(|segment| segment.kind == PT_INTERP) {
        return Err("is dynamically linked; build it with CGO_ENABLED=0");
    }
    match header.kind {
        ET_EXEC => {}
        ET_DYN => return Err("is position-independent, not linked to a fixed address"),
        _ => return Err("is an ELF file, but not an executable"),
    }
    if segments.len() > MAX_SEGMENTS {
        return Err("has more than 32 program headers");
    }
    if segments.iter().any(|segment| segment.kind == PT_GNU_STACK && segment.flags & PF_X != 0) {
        return Err("wants an executable stack");
    }
    let loaded: Vec<_> = segments.iter().filter(|segment| segment.kind == PT_LOAD).collect();
    if loaded.is_empty() {
        return Err("has no segment to load");
    }
    layout(&loaded, image.len() as u64)
}

fn layout(loaded: &[&Segment], len: u64) -> Result<(), &'static str> {
    const WRAPS: &str = "has a segment that wraps around";
    let (mut file_end, mut memory_end) = (0, 0);
    for segment in loaded {
        // Room for the rounding up to a page as well.
        let end = segment.offset.checked_add(segment.filesz).filter(|end| end.checked_add(PAGE).is_some());
        let end = end.ok_or(WRAPS)?;
        let top = segment.vaddr.checked_add(segment.memsz).filter(|top| top.checked_add(PAGE).is_some());
        let top = top.ok_or(WRAPS)?;
        if end > len {
            return Err("is shorter than its segments; it was truncated");
        }
        if segment.filesz > segment.memsz {
            return Err("has a segment that is larger in the file than in memory");
        }
        if !(segment.vaddr ^ segment.offset).is_multiple_of(PAGE) {
            return Err("has a segment whose address does not match its place in the file");
        }
        if page_floor(segment.offset) < file_end {
            return Err("has two segments that share a page of the file");
        }
        if page_floor(segment.vaddr) < memory_end {
            return Err("has two segments that share a page of memory, or are out of order");
        }
        if segment.memsz > segment.filesz && segment.flags & PF_W == 0 {
            return Err("has a read-only segment that goes on with zeros");
        }
        (file_end, memory_end) = (page_ceil(end), page_ceil(top));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gofer_early::elf::PF_R;

    use super::*;

    const TEXT: Segment = Segment {
        kind: PT_LOAD,
        flags: PF_R | PF_X,
        offset: 0,
        vaddr: 0x40_0000,
        paddr: 0,
        filesz: 0x1800,
        memsz: 0x1800,
        align: PAGE,
    };
    const DATA: Segment =
        Segment { flags: PF_R | PF_W, offset: 0x2000, vaddr: 0x40_2000, filesz: 0x10, memsz: 0x5000, ..TEXT };

    /// An executable with these segments, the file's last byte being that of the last segment.
    fn image(kind: u16, machine: u16, segments: &[Segment]) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([kind.to_le_bytes(), machine.to_le_bytes()].concat());
        file.extend([0; 12]);
        file.extend(64_u64.to_le_bytes());
        file.extend([0; 14]);
        file.extend(56_u16.to_le_bytes());
        file.extend(u16::try_from(segments.len()).expect("few segments").to_le_bytes());
        file.extend([0; 6]);
        for segment in segments {
            file.extend(elf::encode(segment));
        }
        file.resize(0x2010, 0);
        file
    }

    fn refusal(segments: &[Segment]) -> &'static str {
        check(&image(ET_EXEC, EM_X86_64, segments)).expect_err("refused")
    }

    #[test]
    fn a_static_executable_is_taken() {
        assert_eq!(check(&image(ET_EXEC, EM_X86_64, &[TEXT, DATA])), Ok(()));
    }

    #[test]
    fn each_other_kind_of_file_is_refused_by_name() {
        assert!(check(b"#!/bin/sh\nexec runsc \"$@\"\n").is_err_and(|why| why.contains("not a 64-bit")));
        assert!(check(&image(ET_DYN, EM_X86_64, &[TEXT])).is_err_and(|why| why.contains("position-independent")));
        assert!(check(&image(1, EM_X86_64, &[TEXT])).is_err_and(|why| why.contains("not an executable")));
        assert!(check(&image(ET_EXEC, 183, &[TEXT])).is_err_and(|why| why.contains("another architecture")));
        let whole = image(ET_EXEC, EM_X86_64, &[TEXT, DATA]);
        assert!(check(&whole[..100]).is_err_and(|why| why.contains("within its program headers")));
        assert!(check(&whole[..0x2008]).is_err_and(|why| why.contains("truncated")));
    }

    #[test]
    fn each_layout_that_cannot_be_moved_is_refused_by_name() {
        assert!(refusal(&[Segment { kind: PT_INTERP, ..TEXT }, TEXT]).contains("dynamically linked"));
        assert!(refusal(&[TEXT, Segment { kind: PT_GNU_STACK, ..TEXT }]).contains("executable stack"));
        assert!(refusal(&[Segment { kind: 4, ..TEXT }]).contains("no segment"));
        assert!(refusal(&[TEXT; 33]).contains("more than 32"));
        assert!(refusal(&[Segment { offset: u64::MAX - PAGE, filesz: 1, ..TEXT }]).contains("wraps"));
        assert!(refusal(&[Segment { vaddr: u64::MAX - PAGE, ..TEXT }]).contains("wraps"));
        assert!(refusal(&[Segment { memsz: 0x10, ..TEXT }]).contains("larger in the file"));
        assert!(refusal(&[Segment { vaddr: 0x40_0010, ..TEXT }]).contains("does not match"));
        assert!(refusal(&[TEXT, Segment { offset: 0x1000, vaddr: 0x40_2000, ..DATA }]).contains("page of the file"));
        assert!(refusal(&[TEXT, Segment { vaddr: 0x40_1000, ..DATA }]).contains("page of memory"));
        assert!(refusal(&[Segment { memsz: 0x2000, ..TEXT }]).contains("goes on with zeros"));
    }
}
