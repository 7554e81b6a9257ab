//! Packet windows and the memory behind them, on a real kernel.
#![cfg(not(loom))]

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, MetadataExt},
    },
};

use gofer_protocol::transport::{
    memory::{AllocateError, Allocation, MAX_WINDOWS, WindowAllocator},
    window::{HEADER_SIZE, MapError, OutOfBounds, Window},
};
use proptest::prelude::*;
use rustix::{
    fs::{FallocateFlags, MemfdFlags, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fcntl_getfl},
    io::Errno,
};

#[test]
fn memory_grows_by_doubling_and_windows_lie_back_to_back() {
    let mut windows = WindowAllocator::new(DEFAULT_MAX);
    for (index, size) in (0..).zip([2 * MIB, 4 * MIB, 8 * MIB, 8 * MIB]) {
        let Allocation { memory, data_offset, data_length, window } = windows.allocate().unwrap();
        assert_eq!((data_offset, data_length), (index * 2 * MIB.cast_signed(), 2 * MIB));
        assert_eq!(window.capacity() as u64, 2 * MIB - 16);
        assert_eq!(File::from(memory).metadata().unwrap().size(), size);
    }
}

#[test]
fn a_fifth_window_is_refused_with_enomem() {
    let mut windows = WindowAllocator::new(4096);
    for _ in 0..MAX_WINDOWS {
        drop(windows.allocate().unwrap());
    }
    let refused = windows.allocate().unwrap_err();
    assert_eq!((refused, refused.errno()), (AllocateError::Limit, Errno::NOMEM));
}

#[test]
fn windows_are_whole_pages_for_any_message_size() {
    for (max, length) in [(0, PAGE), (4076, PAGE), (4077, 2 * PAGE), (DEFAULT_MAX, 2 * MIB)] {
        let allocation = WindowAllocator::new(max).allocate().unwrap();
        assert_eq!(allocation.data_length, length, "for messages of {max}");
    }
    assert_eq!(WindowAllocator::new(u32::MAX).allocate().unwrap_err().errno(), Errno::INVAL);
}

#[test]
fn memory_is_sealed_against_shrinking_and_further_seals() {
    let memory = one_window().memory;
    assert_eq!(fcntl_get_seals(&memory).unwrap().bits(), 3);
    assert_eq!(fcntl_add_seals(&memory, SealFlags::GROW), Err(Errno::PERM));
    assert!(fcntl_getfl(&memory).unwrap().contains(OFlags::NONBLOCK));
    let file = File::from(memory);
    let refused = file.set_len(0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
}

#[test]
fn a_client_that_grows_the_memory_only_spoils_its_own_next_window() {
    let mut windows = WindowAllocator::new(DEFAULT_MAX);
    let first = windows.allocate().unwrap();
    File::from(first.memory).set_len(1 << 40).unwrap();
    assert_eq!(windows.allocate().unwrap_err().errno(), Errno::PERM);
    first.window.copy_in(0, b"still there").unwrap();
}

#[test]
fn memory_that_could_fault_is_not_mapped() {
    let good = one_window();
    let map = |offset, length| Window::map(&good.memory, offset, length).map(|_| ());
    assert_eq!(map(0, 2 * MIB), Ok(()));
    assert_eq!(map(PAGE.cast_signed(), 2 * MIB), Err(MapError::BeyondEnd));
    assert_eq!(map(0, 4 * MIB), Err(MapError::BeyondEnd));
    assert_eq!(map((i64::MAX.cast_unsigned() / PAGE * PAGE).cast_signed(), PAGE), Err(MapError::BeyondEnd));
    assert_eq!(map(-PAGE.cast_signed(), PAGE), Err(MapError::Offset));
    assert_eq!(map(i64::MIN, PAGE), Err(MapError::Offset));
    assert_eq!(map(1, PAGE), Err(MapError::Offset));
    for length in [0, 1, PAGE - 1, PAGE + 1, u64::from(u32::MAX), 1 << 32, 1 << 33, u64::MAX] {
        assert_eq!(map(0, length), Err(MapError::Length), "length {length}");
    }

    let unsealed = memfd(MemfdFlags::ALLOW_SEALING);
    assert_eq!(Window::map(&unsealed, 0, PAGE).unwrap_err(), MapError::NotSealed);
    fcntl_add_seals(&unsealed, SealFlags::SHRINK).unwrap();
    assert!(Window::map(&unsealed, 0, PAGE).is_ok());
    let unsealable = memfd(MemfdFlags::empty());
    assert_eq!(Window::map(&unsealable, 0, PAGE).unwrap_err(), MapError::NotSealed);
    let file = tempfile::tempfile().unwrap();
    file.set_len(MIB).unwrap();
    assert_eq!(Window::map(&file, 0, PAGE).unwrap_err(), MapError::NotSealed);
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    assert_eq!(Window::map(&pipe, 0, PAGE).unwrap_err(), MapError::NotSealed);
}

#[test]
fn huge_pages_that_may_run_out_are_not_mapped() {
    let Ok(huge) = rustix::fs::memfd_create(c"test", MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB) else {
        return eprintln!("SKIPPED: no memfd with huge pages on this machine");
    };
    File::from(huge.try_clone().unwrap()).set_len(2 * MIB).unwrap();
    fcntl_add_seals(&huge, SealFlags::SHRINK).unwrap();
    assert_eq!(Window::map(&huge, 0, 2 * MIB).unwrap_err(), MapError::NotSealed);
}

#[test]
fn nothing_outside_the_datagram_area_is_accessible() {
    let window = one_window().window;
    let capacity = window.capacity();
    let mut bytes = [1; 8];
    for offset in [capacity - 7, capacity, capacity + 1, usize::MAX - 7, usize::MAX - 15, usize::MAX] {
        assert_eq!(window.copy_in(offset, &bytes), Err(OutOfBounds));
        assert_eq!(window.copy_out(offset, &mut bytes), Err(OutOfBounds));
        assert_eq!(window.append_to(offset, 8, &mut Vec::new()), Err(OutOfBounds));
        let file = tempfile::tempfile().unwrap();
        assert_eq!(window.read_from_file(&file, offset, 8, 0), Err(Errno::INVAL));
        assert_eq!(window.write_to_file(&file, offset, 8, 0), Err(Errno::INVAL));
        assert_eq!(window.release(offset..offset.wrapping_add(8)), Err(Errno::INVAL));
    }
    assert_eq!(window.append_to(0, usize::MAX, &mut Vec::new()), Err(OutOfBounds));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let reversed = 5..2;
    assert_eq!(window.release(reversed), Err(Errno::INVAL));
    assert_eq!(bytes, [1; 8]);
    assert_eq!(window.copy_in(capacity, &[]), Ok(()));
    assert_eq!(window.copy_in(capacity - 8, &bytes), Ok(()));
}

#[test]
fn copies_do_not_touch_their_neighbours() {
    let Allocation { window, memory, .. } = one_window();
    let memory = File::from(memory);
    let ones = [0xff; 40];
    for start in 0..16_usize {
        for length in 0..40 - start {
            window.copy_in(0, &[0; 64]).unwrap();
            window.copy_in(start, &ones[..length]).unwrap();
            let mut seen = [0; 64];
            memory.read_exact_at(&mut seen, 16).unwrap();
            assert!(seen.iter().enumerate().all(|(i, &byte)| (byte == 0xff) == (start..start + length).contains(&i)));
        }
    }
}

proptest! {
    #[test]
    fn what_is_copied_in_is_copied_out_at_any_alignment(
        offset in 0..3000_usize,
        from in 0..9_usize,
        to in 0..9_usize,
        bytes in prop::collection::vec(any::<u8>(), 9..200),
    ) {
        let Allocation { window, memory, .. } = one_window();
        let source = &bytes[from..];
        window.copy_in(offset, source).unwrap();

        let mut seen = vec![0; source.len()];
        File::from(memory).read_exact_at(&mut seen, (HEADER_SIZE + offset) as u64).unwrap();
        prop_assert_eq!(&seen, source);

        let mut target = vec![0; to + source.len()];
        window.copy_out(offset, &mut target[to..]).unwrap();
        prop_assert_eq!(&target[to..], source);
        prop_assert!(target[..to].iter().all(|&byte| byte == 0));

        let mut appended = bytes[..to].to_vec();
        window.append_to(offset, source.len(), &mut appended).unwrap();
        prop_assert_eq!(&appended[..to], &bytes[..to]);
        prop_assert_eq!(&appended[to..], source);
    }
}

#[test]
fn a_whole_window_goes_through() {
    let window = one_window().window;
    let bytes: Vec<u8> = (0..window.capacity()).map(|i| (i % 251).to_le_bytes()[0]).collect();
    window.copy_in(0, &bytes).unwrap();
    let mut copy = Vec::new();
    window.append_to(0, bytes.len(), &mut copy).unwrap();
    assert!(copy == bytes);
}

#[test]
fn files_are_read_and_written_in_place() {
    let window = one_window().window;
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(b"0123456789", 0).unwrap();
    assert_eq!(window.read_from_file(&file, 7, 5, 3), Ok(5));
    assert_eq!(window.read_from_file(&file, 100, 50, 8), Ok(2));
    assert_eq!(window.read_from_file(&file, 0, 50, 10), Ok(0));
    let mut seen = [0; 5];
    window.copy_out(7, &mut seen).unwrap();
    assert_eq!(&seen, b"34567");

    assert_eq!(window.write_to_file(&file, 7, 5, 100), Ok(5));
    file.read_exact_at(&mut seen, 100).unwrap();
    assert_eq!(&seen, b"34567");
}

#[test]
fn file_errors_come_back() {
    let window = one_window().window;
    let (pipe, _writer) = rustix::pipe::pipe().unwrap();
    assert_eq!(window.read_from_file(&pipe, 0, 1, 0), Err(Errno::SPIPE));
    let file = tempfile::tempfile().unwrap();
    for position in [1 << 63, u64::MAX] {
        assert_eq!(window.read_from_file(&file, 0, 1, position), Err(Errno::INVAL));
        assert_eq!(window.write_to_file(&file, 0, 1, position), Err(Errno::INVAL));
    }
    let directory = File::open("/").unwrap();
    assert_eq!(window.read_from_file(&directory, 0, 1, 0), Err(Errno::ISDIR));
    assert_eq!(window.write_to_file(&directory, 0, 1, 0), Err(Errno::BADF));
}

#[test]
fn released_pages_are_given_back_and_the_header_page_stays() {
    let Allocation { window, memory, .. } = one_window();
    let memory = File::from(memory);
    let charged = || memory.metadata().unwrap().blocks() * 512;
    let page = usize::try_from(PAGE).unwrap();
    window.copy_in(0, &vec![1; window.capacity()]).unwrap();
    assert_eq!(charged(), 2 * MIB);

    window.release(0..0).unwrap();
    window.release(page..page + 10).unwrap();
    assert_eq!(charged(), 2 * MIB, "no whole page was in the range");

    window.release(3 * page..window.capacity()).unwrap();
    assert_eq!(charged(), 4 * PAGE);
    window.set_data_len(9);
    window.release(0..window.capacity()).unwrap();
    assert_eq!(charged(), PAGE);
    assert_eq!(window.data_len(), 9);
    let mut seen = [1; 8];
    window.copy_out(2 * page, &mut seen).unwrap();
    assert_eq!(seen, [0; 8]);
}

#[test]
fn a_hole_punched_by_the_client_reads_as_zero() {
    let Allocation { window, memory, .. } = one_window();
    window.copy_in(0, b"x").unwrap();
    window.set_data_len(1);
    fallocate(&memory, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 2 * MIB).unwrap();
    let mut seen = [1];
    window.copy_out(0, &mut seen).unwrap();
    assert_eq!((window.data_len(), seen), (0, [0]));
}

fn one_window() -> Allocation {
    WindowAllocator::new(DEFAULT_MAX).allocate().unwrap()
}

/// Some memory, not sealed yet.
fn memfd(flags: MemfdFlags) -> OwnedFd {
    let memory = rustix::fs::memfd_create(c"test", flags).unwrap();
    rustix::fs::ftruncate(memory.as_fd(), MIB).unwrap();
    memory
}

const DEFAULT_MAX: u32 = 2_093_056;
const MIB: u64 = 1 << 20;
/// These sizes are those of the usual page.
const PAGE: u64 = 4096;
