//! A client that asks for anything, over its socket and two channels, until it is killed: `random-client SOCKET SEED`.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use gofer_integration::{Answer, Ask, Exchange, Random, Raw};
use gofer_protocol::Mid;

fn main() {
    let mut args = std::env::args().skip(1);
    let socket = args.next().expect("a socket");
    let seed: u64 = args.next().and_then(|seed| seed.parse().ok()).expect("a seed");
    let raw = Raw::new(UnixStream::connect(socket).expect("a server"));
    let newest = AtomicU64::new(raw.mount().0);
    // Before anything else is asked for, which may be channels.
    let channels = [raw.on_channel(), raw.on_channel()];
    // Told to whoever kills, so that it does not do so before there is anything to interrupt.
    println!("ready");
    std::thread::scope(|scope| {
        for (n, channel) in (1..).zip(channels) {
            let newest = &newest;
            scope.spawn(move || ask_for_ever(&channel, newest, Random::new(seed ^ n << 32)));
        }
        ask_for_ever(&raw, &newest, Random::new(seed));
    });
}

fn ask_for_ever(client: &dyn Exchange, newest: &AtomicU64, mut random: Random) {
    loop {
        let mid = u16::try_from(1 + random.below(33)).expect("a message");
        let payload = payload(Mid(mid), newest.load(Ordering::Relaxed), &mut random);
        let Some(answer) = client.try_exchange(mid, &payload) else { return };
        if let Some(fd) = number(&answer) {
            newest.fetch_max(fd, Ordering::Relaxed);
        }
    }
}

/// The number that a reply hands out first.
fn number(answer: &Answer) -> Option<u64> {
    let at = match answer.mid {
        Mid::MOUNT | Mid::OPEN_AT | Mid::OPEN_CREATE_AT | Mid::MKDIR_AT | Mid::MKNOD_AT => 0,
        Mid::SYMLINK_AT | Mid::LINK_AT | Mid::BIND_AT => 0,
        Mid::WALK => 3,
        _ => return None,
    };
    answer.payload.get(at..).and_then(<[u8]>::first_chunk).map(|id| u64::from_le_bytes(*id))
}

/// A payload that makes sense more often than not.
fn payload(mid: Mid, newest: u64, random: &mut Random) -> Vec<u8> {
    if random.below(20) == 0 {
        return (0..random.below(300)).map(|_| random.number().to_le_bytes()[0]).collect();
    }
    let mut out = Payload { bytes: Vec::new(), newest, random };
    match mid {
        Mid::WALK | Mid::WALK_STAT => out.fd().path(),
        Mid::OPEN_AT => out.fd().small(),
        Mid::CLOSE | Mid::FSYNC => out.bytes(&[2, 0]).fd().fd(),
        Mid::PREAD => out.offset().fd().size().bytes(&[0; 4]),
        Mid::PWRITE => out.offset().fd().data(),
        Mid::OPEN_CREATE_AT => out.fd().owner(0x81a4).small().name(),
        Mid::MKDIR_AT => out.fd().owner(0x41ed).name(),
        Mid::MKNOD_AT => out.fd().owner(0x81a4).bytes(&[0; 8]).name(),
        Mid::BIND_AT => out.fd().owner(0xc1ed).bytes(&[1, 0, 0, 0]).name(),
        Mid::SYMLINK_AT => out.fd().bytes(&[0xff; 8]).name().name(),
        Mid::LINK_AT => out.fd().fd().name(),
        Mid::RENAME_AT | Mid::RENAME_AT2 => out.fd().fd().name().name().small(),
        Mid::UNLINK_AT => {
            let flags = *out.random.one_of(&[[0, 0, 0, 0], [0, 2, 0, 0]]);
            out.fd().bytes(&flags).name()
        }
        Mid::CONNECT | Mid::CONNECT_WITH_CREDS => out.fd().bytes(&[1, 0, 0, 0, 0, 0, 0, 0]).bytes(&[0xff; 8]),
        Mid::GETDENTS64 => out.fd().bytes(&(-65_536_i32).to_le_bytes()).bytes(&[0; 4]),
        Mid::SET_STAT => out.fd().bytes(&[0x62, 0, 0, 0, 0xed, 1, 0, 0]).bytes(&[0xff; 8]).bytes(&[0; 40]),
        Mid::FGET_XATTR | Mid::FSET_XATTR => out.fd().bytes(&[0; 4]).bytes(b"\x06\0user.x\x01\0v"),
        Mid::FREMOVE_XATTR => out.fd().bytes(b"\x06\0user.x"),
        Mid::FALLOCATE => out.fd().bytes(&[0; 16]).bytes(&[0, 16, 0, 0, 0, 0, 0, 0]),
        _ => out.fd().bytes(&[0; 24]),
    };
    out.bytes
}

struct Payload<'r> {
    bytes: Vec<u8>,
    newest: u64,
    random: &'r mut Random,
}

impl Payload<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// One of the newest numbers, of whatever kind, or of none.
    fn fd(&mut self) -> &mut Self {
        let fd = self.newest.saturating_sub(self.random.below(24)) + 1;
        self.bytes(&fd.to_le_bytes())
    }

    fn name(&mut self) -> &mut Self {
        let name = *self.random.one_of(&[&b"a"[..], b"b", b"c", b"d", b"fifo", b"big", b".."]);
        let len = u16::try_from(name.len()).expect("a short name");
        self.bytes(&len.to_le_bytes()).bytes(name)
    }

    fn path(&mut self) -> &mut Self {
        let len = self.random.below(4);
        self.bytes(&u16::try_from(len).expect("a short path").to_le_bytes());
        for _ in 0..len {
            self.name();
        }
        self
    }

    fn owner(&mut self, mode: u16) -> &mut Self {
        self.bytes(&[0xff; 8]).bytes(&mode.to_le_bytes()).bytes(&[0; 6])
    }

    fn small(&mut self) -> &mut Self {
        let small = u32::try_from(self.random.below(4)).expect("a small number");
        self.bytes(&small.to_le_bytes())
    }

    fn offset(&mut self) -> &mut Self {
        let offset = self.random.below(1 << 20);
        self.bytes(&offset.to_le_bytes())
    }

    /// Up to a megabyte, so that a transfer is something that can be interrupted.
    fn size(&mut self) -> &mut Self {
        let size = u32::try_from(self.random.below(1 << 20)).expect("a size");
        self.bytes(&size.to_le_bytes())
    }

    fn data(&mut self) -> &mut Self {
        let size = u32::try_from(1 << self.random.below(20)).expect("a size");
        self.bytes(&size.to_le_bytes());
        self.bytes.resize(self.bytes.len() + usize::try_from(size).expect("a size"), 7);
        self
    }
}
