//! The two ELF records that matter here, as on disk. Names are those of elf(5).
#![allow(missing_docs, reason = "elf(5) documents each")]

/// ELF file header.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct FileHeader {
    pub ident: [u8; 16],
    pub kind: u16,
    pub machine: u16,
    pub version: u32,
    pub entry: u64,
    pub phoff: u64,
    pub shoff: u64,
    pub flags: u32,
    pub ehsize: u16,
    pub phentsize: u16,
    pub phnum: u16,
    pub shentsize: u16,
    pub shnum: u16,
    pub shstrndx: u16,
}

/// ELF program header: one segment.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub paddr: u64,
    pub filesz: u64,
    pub memsz: u64,
    pub align: u64,
}

const _: () = assert!(size_of::<FileHeader>() == 64);
const _: () = assert!(size_of::<Segment>() == SEGMENT_SIZE as usize);

pub const SEGMENT_SIZE: u64 = 56;
pub const PAGE: u64 = 4096;

pub const ET_EXEC: u16 = 2;
pub const EM_X86_64: u16 = 62;

pub const PT_LOAD: u32 = 1;
pub const PT_INTERP: u32 = 3;
pub const PT_NOTE: u32 = 4;
pub const PT_GNU_STACK: u32 = 0x6474_e551;

pub const PF_X: u32 = 1;
pub const PF_W: u32 = 2;
pub const PF_R: u32 = 4;

pub const fn page_floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

pub const fn page_ceil(address: u64) -> u64 {
    page_floor(address + PAGE - 1)
}
