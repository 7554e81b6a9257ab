//! Writers, renamers and deleters on one tree, each a client of its own, while another process of the host swaps
//! directories for symbolic links that lead outside. `GOFER_CHURN_SECONDS` says for how long; 10 by default.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gofer_integration::wait::PATIENCE;
use gofer_integration::{Actor, Ask, Exchange, Listening, Outside, Random, Raw, change, new_in};
use gofer_protocol::message::SetStatRequest;
use gofer_protocol::record::{FileType, Inode, Statx, StatxMask};
use gofer_protocol::{Errno, FdId, Uid};
use rustix::fs::{CWD, RenameFlags, fstat, makedev, renameat_with};

/// Directories, and names in each: a thousand in all.
const DIRECTORIES: u64 = 20;
const NAMES: u64 = 50;

/// Symbolic links that take the place of directories.
const LINKS: u64 = 3;

/// Must show: nothing outside is ever reached, nothing leaks, nothing stops.
#[test]
fn the_tree_stays_closed_while_everyone_changes_it_at_once() {
    let seconds = std::env::var("GOFER_CHURN_SECONDS").map_or(10, |text| text.parse().expect("a number of seconds"));
    let outside = Arc::new(Outside::with(|path| (0..NAMES).for_each(|n| plant(&path.join("dir"), n))));
    let listening = Listening::with(&["--host-uds", "all"], |dir| {
        for d in 0..DIRECTORIES {
            let path = dir.join(directory(d));
            fs::create_dir(&path).expect("a directory");
            (0..NAMES).for_each(|n| plant(&path, n));
        }
        (0..LINKS).for_each(|l| symlink(outside.path().join("dir"), dir.join(link(l))).expect("a link"));
    });
    let baseline = listening.gofer.descriptors().len();

    let steps: [(&str, Step, bool); 6] = [
        ("writer", write, false),
        ("writer on a channel", write, true),
        ("renamer", rename, false),
        ("renamer on a channel", rename, true),
        ("deleter", delete, false),
        ("deleter on a channel", delete, true),
    ];
    let mut actors: Vec<(&str, Actor)> = Vec::new();
    for (seed, (name, step, on_channel)) in (1..).zip(steps) {
        let mut party = Party::new(&listening, Arc::clone(&outside), on_channel, seed);
        actors.push((name, Actor::repeat(move || party.turn(step))));
    }
    actors.push(("host", host(listening.path(), 99)));

    watch(&listening, &outside, &actors, Duration::from_secs(seconds));
    for (name, actor) in &actors {
        println!("{name}: {} rounds", actor.rounds());
    }
    drop(actors);
    outside.assert_untouched();
    listening.gofer.assert_descriptors(baseline, "leaked");
    let (client, root) = listening.client();
    assert!(client.fstat(root).is_ok());
}

/// Looks at the server from outside until the time is over.
fn watch(listening: &Listening, outside: &Outside, actors: &[(&str, Actor)], time: Duration) {
    let start = Instant::now();
    let mut progress: Vec<_> = actors.iter().map(|_| (0, start)).collect();
    while start.elapsed() < time {
        let held = listening.gofer.held_files();
        assert!(!held.iter().any(|(dev, ino)| outside.holds_identity(*dev, *ino)), "the server holds a file outside");
        for ((name, actor), (seen, since)) in actors.iter().zip(&mut progress) {
            assert!(!actor.has_failed(), "the {name} failed");
            if actor.rounds() > *seen {
                (*seen, *since) = (actor.rounds(), Instant::now());
            } else if since.elapsed() > PATIENCE {
                // Nobody could be waited for any more, so there is no clean end.
                eprintln!("the {name} has stood still for {PATIENCE:?}, after {seen} rounds");
                std::process::exit(101);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(actors.iter().all(|(_, actor)| actor.rounds() > 0), "someone never came to it");
}

fn directory(d: u64) -> String {
    format!("d{d}")
}

fn name(n: u64) -> String {
    format!("n{n}")
}

fn link(l: u64) -> String {
    format!("link{l}")
}

fn plant(dir: &Path, n: u64) {
    fs::write(dir.join(name(n)), "planted").expect("a file");
}

/// Another process: swaps directories for links, atomically. Whoever holds which name afterwards, all are still there.
fn host(dir: &Path, seed: u64) -> Actor {
    let (dir, mut random) = (dir.to_path_buf(), Random::new(seed));
    Actor::repeat(move || {
        let (one, other) = (directory(random.below(DIRECTORIES)), link(random.below(LINKS)));
        // A client may be moving one of the two at this moment.
        let _ = renameat_with(CWD, dir.join(one), CWD, dir.join(other), RenameFlags::EXCHANGE);
        std::thread::sleep(Duration::from_micros(200));
    })
}

type Step = fn(&mut Party) -> Result<(), Errno>;

/// A client with eyes: whatever it is told or given must be inside.
struct Party {
    client: Box<dyn Exchange + Send>,
    root: FdId,
    outside: Arc<Outside>,
    random: Random,
    /// Numbers that this turn was given.
    held: Vec<FdId>,
    /// Keeps the connection of a channel.
    _connection: Option<Raw>,
}

impl Party {
    fn new(listening: &Listening, outside: Arc<Outside>, on_channel: bool, seed: u64) -> Self {
        let (connection, root) = listening.client();
        let (client, connection): (Box<dyn Exchange + Send>, _) = match on_channel {
            true => (Box::new(connection.on_channel()), Some(connection)),
            false => (Box::new(connection), None),
        };
        Self { client, root, outside, random: Random::new(seed), held: Vec::new(), _connection: connection }
    }

    /// One step, and nothing held after it. Others interfere, so it may fail, but only in the ways of a file system.
    fn turn(&mut self, step: Step) {
        if let Err(errno) = step(self) {
            let expected = [
                Errno::ENOENT,
                // From opening a socket.
                Errno::ENXIO,
                Errno::EEXIST,
                Errno::ENOTDIR,
                Errno::EISDIR,
                Errno::EINVAL,
                Errno::ENOTEMPTY,
                Errno::EPERM,
                Errno::EADDRINUSE,
                Errno::ECONNREFUSED,
            ];
            assert!(expected.contains(&errno), "{errno:?}");
        }
        let held = std::mem::take(&mut self.held);
        self.client.close(&held);
    }

    fn see(&self, stat: &Statx) {
        assert!(!self.outside.holds(stat), "attributes of a file outside");
    }

    fn take(&mut self, inode: &Inode) -> FdId {
        self.held.push(inode.control_fd);
        self.see(&inode.stat);
        inode.control_fd
    }

    fn take_open(&mut self, open: FdId, fds: &[OwnedFd]) -> FdId {
        self.held.push(open);
        for fd in fds {
            let is = fstat(fd).expect("metadata");
            assert!(!self.outside.holds_identity(is.st_dev, is.st_ino), "a descriptor of a file outside");
        }
        open
    }

    fn random_directory(&mut self) -> String {
        directory(self.random.below(DIRECTORIES))
    }

    fn random_name(&mut self) -> String {
        name(self.random.below(NAMES))
    }

    /// Walks; all components, or `ENOENT`.
    fn walk(&mut self, path: &[&str]) -> Result<(FdId, FileType), Errno> {
        let (_, inodes) = self.client.walk(self.root, path)?;
        for inode in &inodes {
            self.take(inode);
        }
        let last = inodes.get(path.len() - 1).ok_or(Errno::ENOENT)?;
        Ok((last.control_fd, last.stat.mode.file_type().expect("a type")))
    }

    /// A directory of the pool: `ENOTDIR` while a link has its name.
    fn walk_to_directory(&mut self) -> Result<FdId, Errno> {
        let name = self.random_directory();
        match self.walk(&[&name])? {
            (fd, FileType::Directory) => Ok(fd),
            _ => Err(Errno::ENOTDIR),
        }
    }
}

/// Writes to a file, or makes it; reads it back, sets its attributes.
fn write(me: &mut Party) -> Result<(), Errno> {
    let (dir, name) = (me.random_directory(), me.random_name());
    let stats = me.client.walk_stat(me.root, &[&dir, &name])?;
    stats.iter().for_each(|stat| me.see(stat));
    let file = match me.walk(&[&dir, &name]) {
        Ok((file, _)) => file,
        Err(Errno::ENOENT) => {
            let dir = me.walk_to_directory()?;
            let (inode, open, fds) = me.client.create(dir, &name)?;
            me.take_open(open, &fds);
            me.take(&inode)
        }
        Err(errno) => return Err(errno),
    };
    // O_RDWR, sometimes with O_TRUNC.
    let flags = *me.random.one_of(&[0o2, 0o2, 0o1002]);
    let (open, fds) = me.client.open(file, flags)?;
    me.take_open(open, &fds);
    me.client.pwrite(open, me.random.below(8192), b"churn")?;
    me.client.pread(open, 0, 8192)?;
    me.see(&me.client.fstat(open)?);
    let (mode, size, uid) = (0o640, 100, Uid(4711));
    let mask = StatxMask::MODE.or(StatxMask::SIZE).or(StatxMask::UID);
    let set = me.client.set_stat(&SetStatRequest { mode, size, uid, ..change(file, mask) })?;
    assert_eq!(set.failure_errno, 0, "a regular file takes it all");
    Ok(())
}

/// Moves a file to another directory, or swaps two files, or two directories.
fn rename(me: &mut Party) -> Result<(), Errno> {
    if me.random.below(4) == 0 {
        let (one, other) = (me.random_directory(), me.random_directory());
        return me.client.rename2((me.root, &one), (me.root, &other), 2);
    }
    let (from, to) = (me.walk_to_directory()?, me.walk_to_directory()?);
    let (old, new) = (me.random_name(), me.random_name());
    match me.random.below(3) {
        0 => me.client.rename((from, &old), (to, &new)),
        flags => me.client.rename2((from, &old), (to, &new), u32::try_from(flags).expect("1 or 2")),
    }
}

/// Removes a name and puts something else there; lists the directory.
fn delete(me: &mut Party) -> Result<(), Errno> {
    let dir = me.walk_to_directory()?;
    let name = me.random_name();
    let removed = me.client.unlink(dir, &name);
    if removed == Err(Errno::EISDIR) {
        me.client.rmdir(dir, &name)?;
    }
    match me.random.below(6) {
        0 => {
            let inode = me.client.mkdir(new_in(dir, FileType::Directory, 0o755), &name)?;
            me.take(&inode);
        }
        1 => {
            let target = me.outside.path().display().to_string();
            let inode = me.client.symlink(dir, &name, &target)?;
            me.take(&inode);
        }
        2 => {
            let source = (me.random_directory(), me.random_name());
            let (file, _) = me.walk(&[&source.0, &source.1])?;
            let inode = me.client.link(dir, file, &name)?;
            me.take(&inode);
        }
        3 => {
            let (inode, bound, _) = me.client.bind(new_in(dir, FileType::Socket, 0o755), 1, &name)?;
            me.held.push(bound);
            let socket = me.take(&inode);
            me.client.connect(socket, 1)?;
        }
        _ => list(me, dir)?,
    }
    Ok(())
}

fn list(me: &mut Party, dir: FdId) -> Result<(), Errno> {
    let (open, fds) = me.client.open(dir, 0)?;
    me.take_open(open, &fds);
    for entry in me.client.getdents(open, -65_536)? {
        let dev = makedev(entry.device.0, entry.device.1);
        assert!(!me.outside.holds_identity(dev, entry.ino), "an entry of a directory outside");
    }
    Ok(())
}
