//! ELF headers out of the bytes of a file, which may hold anything.

use gofer_early::elf::{FileHeader, SEGMENT_SIZE, Segment};

/// Magic, 64 bits, little-endian.
const IDENT: &[u8] = b"\x7fELF\x02\x01";

/// The file header; none if this is no 64-bit little-endian ELF file.
pub(super) fn header(file: &[u8]) -> Option<FileHeader> {
    if !file.starts_with(IDENT) {
        return None;
    }
    let mut fields = Fields { rest: file };
    Some(FileHeader {
        ident: fields.take()?,
        kind: fields.u16()?,
        machine: fields.u16()?,
        version: fields.u32()?,
        entry: fields.u64()?,
        phoff: fields.u64()?,
        shoff: fields.u64()?,
        flags: fields.u32()?,
        ehsize: fields.u16()?,
        phentsize: fields.u16()?,
        phnum: fields.u16()?,
        shentsize: fields.u16()?,
        shnum: fields.u16()?,
        shstrndx: fields.u16()?,
    })
}

/// All program headers; none if the file does not hold them all, or they are of another size.
pub(super) fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let header = header(file)?;
    if u64::from(header.phentsize) != SEGMENT_SIZE {
        return None;
    }
    (0..header.phnum).map(|number| segment(file.get(place(&header, number)?..)?)).collect()
}

/// Where in the file a program header is.
pub(super) fn place(header: &FileHeader, number: u16) -> Option<usize> {
    usize::try_from(header.phoff.checked_add(u64::from(number) * SEGMENT_SIZE)?).ok()
}

/// A program header as bytes.
pub(super) fn encode(segment: &Segment) -> Vec<u8> {
    let Segment { kind, flags, offset, vaddr, paddr, filesz, memsz, align } = *segment;
    let mut bytes = [kind.to_le_bytes(), flags.to_le_bytes()].concat();
    for word in [offset, vaddr, paddr, filesz, memsz, align] {
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

fn segment(bytes: &[u8]) -> Option<Segment> {
    let mut fields = Fields { rest: bytes };
    Some(Segment {
        kind: fields.u32()?,
        flags: fields.u32()?,
        offset: fields.u64()?,
        vaddr: fields.u64()?,
        paddr: fields.u64()?,
        filesz: fields.u64()?,
        memsz: fields.u64()?,
        align: fields.u64()?,
    })
}

/// Takes fields off the front, as far as there are any.
struct Fields<'f> {
    rest: &'f [u8],
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_comes_back_from_its_bytes() {
        let bytes: Vec<u8> = (0..56).collect();
        let decoded = segment(&bytes).expect("56 bytes are a segment");
        assert_eq!(encode(&decoded), bytes);
        assert!(segment(&bytes[..55]).is_none());
    }

    #[test]
    fn what_is_no_elf_file_has_no_header() {
        for file in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x01\x01\x01\x00"] {
            assert!(header(file).is_none(), "{file:?}");
            assert!(segments(file).is_none(), "{file:?}");
        }
    }
}
