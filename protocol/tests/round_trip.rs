//! What we encode decodes to the same; what is cut short is refused; what lies about lengths does no harm.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;

use gofer_protocol::codec::{Array, Data, Padding, SizedString, StringArray, StringArrayBuf, decode};
use gofer_protocol::message::*;
use gofer_protocol::record::{
    CreateCommon, Dirent, Dirents, DirentsBuf, FileMode, Inode, StatFs, Statx, StatxMask, Timespec, Timestamp,
};
use gofer_protocol::transport::SocketHeader;
use gofer_protocol::{FdId, Gid, Malformed, Mid, Uid, Wire};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use every::Direction;

mod every;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_survives_the_wire(parts in any::<Parts>()) {
        for_every_request(&parts, &mut Survives);
    }

    #[test]
    fn every_reply_survives_the_wire(parts in any::<Parts>()) {
        for_every_reply(&parts, &mut Survives);
    }

    #[test]
    fn a_payload_that_is_cut_short_is_refused(parts in any::<Parts>()) {
        for_every_request(&parts, &mut CutShort);
        for_every_reply(&parts, &mut CutShort);
    }
}

proptest! {
    // Each case decodes some ten thousand payloads.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The lie is told at every offset, so that every length and every count is among them.
    #[test]
    fn a_lie_about_a_length_neither_panics_nor_allocates(parts in any::<Parts>()) {
        for_every_request(&parts, &mut Lies);
        for_every_reply(&parts, &mut Lies);
    }

    #[test]
    fn arbitrary_bytes_neither_panic_nor_allocate(bytes in vec(any::<u8>(), 0..600)) {
        for direction in [Direction::Request, Direction::Reply] {
            for mid in Mid::ALL {
                // Some of it may be a message.
                let _ = inspect_without_allocating(direction, *mid, &bytes);
            }
        }
    }
}

proptest! {
    /// An entry that does not fit any more is neither cut nor dropped: `push` says so.
    #[test]
    fn a_listing_holds_exactly_the_entries_that_fit(
        names in vec(vec(any::<u8>(), 1..300), 0..60),
        limit in 0usize..6000,
        before in vec(any::<u8>(), 0..20),
    ) {
        let mut out = before.clone();
        let mut dirents = DirentsBuf::new(&mut out, limit);
        let mut expected = Vec::new();
        for (number, name) in (0..).zip(&names) {
            let entry = entry(number, name);
            let room = dirents.room();
            let fits = Dirent::FIXED_LEN + name.len() <= room;
            prop_assert_eq!(dirents.push(&entry), fits);
            if fits {
                prop_assert_eq!(dirents.room(), room - Dirent::FIXED_LEN - name.len());
                expected.push(entry);
            } else {
                prop_assert_eq!(dirents.room(), room);
            }
        }
        prop_assert_eq!(dirents.len(), expected.len());
        prop_assert_eq!(dirents.entries_left(), 65_535 - expected.len());

        let (kept, listing) = out.split_at(before.len());
        prop_assert_eq!(kept, &before[..]);
        prop_assert!(listing.len() <= limit.max(2));
        let decoded: Dirents<'_> = decode(listing).unwrap();
        let decoded: Vec<Dirent<'_>> = decoded.iter().collect();
        prop_assert!(decoded.iter().all(|entry| !entry.name.as_bytes().is_empty()));
        prop_assert_eq!(decoded, expected);
    }

    /// Where a listing ends does not depend on how it was cut into replies.
    #[test]
    fn a_listing_cut_into_replies_is_complete(names in vec(vec(any::<u8>(), 1..300), 0..60), limit in 400usize..2000) {
        let entries: Vec<Dirent<'_>> = (0..).zip(&names).map(|(number, name)| entry(number, name)).collect();
        let mut rest = &entries[..];
        let mut replies = Vec::new();
        while !rest.is_empty() {
            let mut reply = Vec::new();
            let mut dirents = DirentsBuf::new(&mut reply, limit);
            let fitting = rest.iter().take_while(|entry| dirents.push(entry)).count();
            prop_assert!(fitting > 0);
            rest = &rest[fitting..];
            replies.push(reply);
        }
        let decoded: Vec<Dirents<'_>> = replies.iter().map(|reply| decode(reply).unwrap()).collect();
        let decoded: Vec<Dirent<'_>> = decoded.iter().flat_map(Dirents::iter).collect();
        prop_assert_eq!(decoded, entries);
    }
}

#[test]
fn a_listing_takes_no_more_entries_than_its_count_can_say() {
    let mut out = Vec::new();
    let mut dirents = DirentsBuf::new(&mut out, usize::MAX);
    for number in 0..65_535 {
        assert!(dirents.push(&entry(number, b"n")));
    }
    assert_eq!(dirents.entries_left(), 0);
    assert!(!dirents.push(&entry(65_535, b"n")));
    assert_eq!(dirents.len(), 65_535);
    assert_eq!(decode::<Dirents<'_>>(&out).unwrap().iter().count(), 65_535);
}

#[test]
fn what_a_length_cannot_say_is_refused_before_it_is_sent() {
    let long = vec![0; 65_536];
    assert!(SizedString::new(&long).is_none());
    assert!(SizedString::new(&long[1..]).is_some());
    assert!(Array::new(&vec![FdId(1); 65_536]).is_none());
    assert!(Array::new(&vec![FdId(1); 65_535]).is_some());
    assert!(StringArrayBuf::new([&long[..]]).is_none());
    assert!(StringArrayBuf::new((0..65_536).map(|_| &b""[..])).is_none());
    assert_eq!(StringArrayBuf::new((0..65_535).map(|_| &b""[..])).unwrap().as_array().len(), 65_535);
}

#[test]
fn every_number_with_a_message_is_reached() {
    let reachable = |direction| Mid::ALL.iter().filter(|mid| every::inspect(direction, **mid, &[]).is_some()).count();
    assert_eq!(reachable(Direction::Request), Mid::ALL.len() - 1);
    assert_eq!(reachable(Direction::Reply), Mid::ALL.len());
}

/// What is checked of each message.
trait Check {
    fn check<'a, T: Wire<'a> + PartialEq + Debug>(
        &mut self,
        direction: Direction,
        mid: Mid,
        message: &T,
        encoded: &'a [u8],
    );
}

/// It decodes to itself, with trailing bytes or without.
struct Survives;

impl Check for Survives {
    fn check<'a, T: Wire<'a> + PartialEq + Debug>(
        &mut self,
        direction: Direction,
        mid: Mid,
        message: &T,
        encoded: &'a [u8],
    ) {
        assert_eq!(decode::<T>(encoded).as_ref(), Ok(message));
        let mut longer = encoded.to_vec();
        longer.extend(b"trailing");
        assert_eq!(every::encode_again(direction, mid, &longer).unwrap().as_deref(), Ok(encoded));
        assert_eq!(inspect_without_allocating(direction, mid, encoded), Ok(()));
    }
}

/// No proper prefix of it is taken for a message.
struct CutShort;

impl Check for CutShort {
    fn check<'a, T: Wire<'a> + PartialEq + Debug>(
        &mut self,
        direction: Direction,
        mid: Mid,
        message: &T,
        encoded: &'a [u8],
    ) {
        for len in 0..encoded.len() {
            let cut = encoded.get(..len).unwrap();
            assert_eq!(inspect_without_allocating(direction, mid, cut), Err(Malformed), "{len} bytes of {message:?}");
        }
    }
}

/// Nothing in it can be replaced by a lie that does harm.
struct Lies;

impl Check for Lies {
    fn check<'a, T: Wire<'a> + PartialEq + Debug>(&mut self, direction: Direction, mid: Mid, _: &T, encoded: &'a [u8]) {
        fn lies<const N: usize>(truth: [u8; N]) -> [[u8; N]; 6] {
            let mut wide = [0; 8];
            wide[..N].copy_from_slice(&truth);
            let truth = u64::from_le_bytes(wide);
            let ones = u64::MAX >> (64 - 8 * N);
            [ones, ones / 2 + 1, ones / 2, truth.wrapping_add(1), truth.wrapping_sub(1), 0xffff_ffff]
                .map(|lie| *lie.to_le_bytes().first_chunk().unwrap())
        }
        let mut lying = encoded.to_vec();
        let mut tell = |at: usize, truth: &[u8], lie: &[u8]| {
            lying[at..at + lie.len()].copy_from_slice(lie);
            // A lie may well be a message, but never a longer one than the bytes that are there.
            if inspect_without_allocating(direction, mid, &lying).is_ok() {
                assert!(every::encode_again(direction, mid, &lying).unwrap().unwrap().len() <= lying.len());
            }
            lying[at..at + lie.len()].copy_from_slice(truth);
        };
        for at in 0..encoded.len() {
            if let Some(truth) = encoded[at..].first_chunk::<2>() {
                lies(*truth).iter().for_each(|lie| tell(at, truth, lie));
            }
            if let Some(truth) = encoded[at..].first_chunk::<4>() {
                lies(*truth).iter().for_each(|lie| tell(at, truth, lie));
            }
            if let Some(truth) = encoded[at..].first_chunk::<8>() {
                lies(*truth).iter().for_each(|lie| tell(at, truth, lie));
            }
        }
    }
}

fn inspect_without_allocating(direction: Direction, mid: Mid, payload: &[u8]) -> Result<(), Malformed> {
    let before = ALLOCATIONS.get();
    let outcome = every::inspect(direction, mid, payload);
    assert_eq!(ALLOCATIONS.get(), before, "decoding {direction:?} {mid:?} allocated");
    outcome.unwrap_or(Ok(()))
}

/// What messages are made of.
#[derive(Debug)]
struct Parts {
    /// Numbers, used in turn.
    numbers: [u64; 8],
    names: Vec<Vec<u8>>,
    data: Vec<u8>,
    fds: Vec<FdId>,
    mids: Vec<Mid>,
    stats: Vec<Statx>,
}

impl Arbitrary for Parts {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        let name = vec(any::<u8>(), 0..20);
        (
            any::<[u64; 8]>(),
            vec(name, 2..5),
            vec(any::<u8>(), 0..100),
            vec(any::<u64>().prop_map(FdId), 0..5),
            vec(any::<u16>().prop_map(Mid), 0..40),
            vec(any::<([u64; 10], [u32; 8])>().prop_map(statx), 1..3),
        )
            .prop_map(|(numbers, names, data, fds, mids, stats)| Self { numbers, names, data, fds, mids, stats })
            .boxed()
    }
}

impl Parts {
    fn u64(&self, index: usize) -> u64 {
        self.numbers[index]
    }

    fn i64(&self, index: usize) -> i64 {
        self.u64(index).cast_signed()
    }

    fn u32(&self, index: usize) -> u32 {
        low(self.u64(index))
    }

    fn fd(&self, index: usize) -> FdId {
        FdId(self.u64(index))
    }

    fn name(&self, index: usize) -> SizedString<'_> {
        SizedString::new(&self.names[index]).unwrap()
    }

    fn path(&self) -> StringArrayBuf {
        StringArrayBuf::new(self.names.iter().map(Vec::as_slice)).unwrap()
    }

    fn create(&self) -> CreateCommon {
        let mode = FileMode(u16::try_from(self.u32(3) & 0xffff).unwrap());
        CreateCommon::new(self.fd(0), Uid(self.u32(1)), Gid(self.u32(2)), mode)
    }

    fn inodes(&self) -> Vec<Inode> {
        (0..).zip(&self.stats).map(|(index, stat)| Inode { control_fd: self.fd(index), stat: *stat }).collect()
    }
}

/// Calls `check` for the message that the expression makes, with its bytes.
macro_rules! check {
    ($check:ident, $direction:ident $mid:expr, $message:expr) => {{
        let message = $message;
        let mut encoded = Vec::new();
        message.put(&mut encoded);
        $check.check(Direction::$direction, $mid, &message, &encoded);
    }};
}

fn for_every_request(p: &Parts, check: &mut impl Check) {
    macro_rules! requests {
        ($($mid:ident: $request:expr;)*) => { $(check!(check, Request Mid::$mid, $request);)* };
    }
    let path = p.path();
    let path: StringArray<'_> = path.as_array();
    let fds = Array::new(&p.fds).unwrap();
    requests! {
        MOUNT: MountRequest;
        CHANNEL: ChannelRequest;
        FSTAT: FStatRequest { fd: p.fd(0) };
        SET_STAT: SetStatRequest {
            fd: p.fd(0),
            mask: StatxMask(p.u32(1)),
            mode: p.u32(2),
            uid: Uid(p.u32(3)),
            gid: Gid(p.u32(4)),
            size: p.u64(5),
            atime: Timespec { seconds: p.i64(6), nanoseconds: p.i64(7) },
            mtime: Timespec { seconds: p.i64(1), nanoseconds: p.i64(2) },
        };
        FSTAT_FS: FStatFsRequest { fd: p.fd(0) };
        WALK: WalkRequest { dir_fd: p.fd(0), path };
        WALK_STAT: WalkStatRequest { dir_fd: p.fd(0), path };
        READ_LINK_AT: ReadLinkAtRequest { fd: p.fd(0) };
        OPEN_AT: OpenAtRequest { fd: p.fd(0), flags: p.u32(1) };
        OPEN_CREATE_AT: OpenCreateAtRequest { create: p.create(), flags: p.u32(4), name: p.name(0) };
        CLOSE: CloseRequest { fds };
        FLUSH: FlushRequest { fd: p.fd(0) };
        FSYNC: FSyncRequest { fds };
        PWRITE: PWriteRequest { offset: p.u64(0), fd: p.fd(1), data: Data::new(&p.data).unwrap() };
        PREAD: PReadRequest { offset: p.u64(0), fd: p.fd(1), count: p.u32(2) };
        FALLOCATE: FAllocateRequest { fd: p.fd(0), mode: p.u64(1), offset: p.u64(2), length: p.u64(3) };
        MKDIR_AT: MkdirAtRequest { create: p.create(), name: p.name(0) };
        MKNOD_AT: MknodAtRequest { create: p.create(), minor: p.u32(4), major: p.u32(5), name: p.name(0) };
        SYMLINK_AT: SymlinkAtRequest {
            dir_fd: p.fd(0),
            uid: Uid(p.u32(1)),
            gid: Gid(p.u32(2)),
            name: p.name(0),
            target: p.name(1),
        };
        LINK_AT: LinkAtRequest { dir_fd: p.fd(0), target: p.fd(1), name: p.name(0) };
        UNLINK_AT: UnlinkAtRequest { dir_fd: p.fd(0), flags: p.u32(1), name: p.name(0) };
        RENAME_AT: RenameAtRequest { old_dir: p.fd(0), new_dir: p.fd(1), old_name: p.name(0), new_name: p.name(1) };
        RENAME_AT2: RenameAt2Request {
            old_dir: p.fd(0),
            new_dir: p.fd(1),
            old_name: p.name(0),
            new_name: p.name(1),
            flags: p.u32(2),
        };
        GETDENTS64: Getdents64Request { dir_fd: p.fd(0), count: p.u32(1).cast_signed() };
        FGET_XATTR: FGetXattrRequest { fd: p.fd(0), buf_size: p.u32(1), name: p.name(0) };
        FSET_XATTR: FSetXattrRequest { fd: p.fd(0), flags: p.u32(1), name: p.name(0), value: p.name(1) };
        FLIST_XATTR: FListXattrRequest { fd: p.fd(0), size: p.u64(1) };
        FREMOVE_XATTR: FRemoveXattrRequest { fd: p.fd(0), name: p.name(0) };
        BIND_AT: BindAtRequest { create: p.create(), sock_type: p.u32(4), name: p.name(0) };
        LISTEN: ListenRequest { fd: p.fd(0), backlog: p.u32(1).cast_signed() };
        ACCEPT: AcceptRequest { fd: p.fd(0) };
        CONNECT: ConnectRequest { fd: p.fd(0), sock_type: p.u32(1) };
        CONNECT_WITH_CREDS: ConnectWithCredsRequest {
            fd: p.fd(0),
            sock_type: p.u32(1),
            padding: Padding,
            uid: Uid(p.u32(2)),
            gid: Gid(p.u32(3)),
        };
    }
}

fn for_every_reply(p: &Parts, check: &mut impl Check) {
    macro_rules! replies {
        ($($mid:ident: $reply:expr;)*) => { $(check!(check, Reply Mid::$mid, $reply);)* };
    }
    let inodes = p.inodes();
    let inode = inodes[0];
    let names = p.path();
    let mut listing = Vec::new();
    let mut dirents = DirentsBuf::new(&mut listing, usize::MAX);
    for (number, name) in (0..).zip(&p.names) {
        assert!(dirents.push(&entry(number, name)));
    }
    replies! {
        ERROR: ErrorReply { errno: p.u32(0) };
        MOUNT: MountReply { root: inode, max_message_size: p.u32(0), supported: Array::new(&p.mids).unwrap() };
        CHANNEL: ChannelReply { data_offset: p.i64(0), data_length: p.u64(1) };
        FSTAT: p.stats[0];
        SET_STAT: SetStatReply { failure_mask: StatxMask(p.u32(0)), failure_errno: p.u32(1) };
        FSTAT_FS: StatFs {
            fs_type: p.u64(0),
            block_size: p.i64(1),
            blocks: p.u64(2),
            blocks_free: p.u64(3),
            blocks_available: p.u64(4),
            files: p.u64(5),
            files_free: p.u64(6),
            name_length: p.u64(7),
        };
        WALK: WalkReply { status: WalkStatus(p.u64(0).to_le_bytes()[0]), inodes: Array::new(&inodes).unwrap() };
        WALK_STAT: WalkStatReply { stats: Array::new(&p.stats).unwrap() };
        READ_LINK_AT: ReadLinkAtReply { target: p.name(0) };
        OPEN_AT: OpenAtReply { open_fd: p.fd(0) };
        OPEN_CREATE_AT: OpenCreateAtReply { child: inode, open_fd: p.fd(0) };
        CLOSE: Empty {};
        PWRITE: PWriteReply { count: p.u64(0) };
        PREAD: PReadReply { data: Data::new(&p.data).unwrap() };
        MKDIR_AT: inode;
        GETDENTS64: Getdents64Reply { dirents: decode(&listing).unwrap() };
        FGET_XATTR: FGetXattrReply { value: p.name(0) };
        FLIST_XATTR: FListXattrReply { names: names.as_array() };
        BIND_AT: BindAtReply { child: inode, bound_fd: p.fd(1) };
        ACCEPT: AcceptReply { peer_addr: p.name(0) };
    }
}

proptest! {
    #[test]
    fn a_socket_header_survives_the_wire(payload_len in any::<u32>(), mid in any::<u16>(), cut in any::<Index>()) {
        let header = SocketHeader::new(payload_len, Mid(mid));
        let mut encoded = Vec::new();
        header.put(&mut encoded);
        prop_assert_eq!(decode::<SocketHeader>(&encoded), Ok(header));
        prop_assert_eq!(decode::<SocketHeader>(&encoded[..cut.index(SocketHeader::LEN)]), Err(Malformed));
    }
}

fn entry(number: u64, name: &[u8]) -> Dirent<'_> {
    Dirent {
        ino: number << 32 | 7,
        dev_minor: low(number),
        dev_major: 254,
        off: !number,
        entry_type: 8,
        name: SizedString::new(name).unwrap(),
    }
}

fn statx((wide, narrow): ([u64; 10], [u32; 8])) -> Statx {
    let timestamp = |index: usize| Timestamp::new(wide[index].cast_signed(), narrow[index % 8]);
    let mut stat = Statx::default();
    stat.mask = StatxMask(narrow[0]);
    stat.blksize = narrow[1];
    stat.attributes = wide[0];
    stat.nlink = narrow[2];
    stat.uid = narrow[3];
    stat.gid = narrow[4];
    stat.mode = FileMode(u16::try_from(narrow[5] & 0xffff).unwrap());
    stat.ino = wide[1];
    stat.size = wide[2];
    stat.blocks = wide[3];
    stat.attributes_mask = wide[4];
    stat.atime = timestamp(5);
    stat.btime = timestamp(6);
    stat.ctime = timestamp(7);
    stat.mtime = timestamp(8);
    stat.rdev_major = narrow[6];
    stat.rdev_minor = narrow[7];
    stat.dev_major = low(wide[9]);
    stat.dev_minor = low(wide[9] >> 32);
    stat
}

fn low(wide: u64) -> u32 {
    u32::try_from(wide & 0xffff_ffff).unwrap()
}

/// The system's allocator, and how often this thread has asked it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract. Counting touches a
// thread-local that is initialised at compile time and has no destructor, so that it neither allocates nor fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `alloc` above has taken the block from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
