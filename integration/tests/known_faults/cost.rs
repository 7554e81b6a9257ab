//! What work costs the host.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gofer_integration::{Ask, Listening, Raw, Served, eventually, say};
use gofer_protocol::transport::channel::ClientChannel;
use gofer_protocol::{FdId, Mid};
use rustix::fs::FallocateFlags;
use rustix::process::{Resource, Rlimit};

/// Row B138.
#[test]
fn walking_through_a_source_tree_costs_about_what_find_costs() {
    const DIRECTORIES: usize = 200;
    const FILES: usize = 50;
    let served = Served::with(&[], |root| {
        for dir in 0..DIRECTORIES {
            let dir = root.join(format!("directory-{dir}"));
            fs::create_dir(&dir).expect("a directory");
            for file in 0..FILES {
                File::create(dir.join(format!("source-file-{file}.c"))).expect("a file");
            }
        }
    });
    let (cpu, memory, start) = (served.gofer.cpu_ms(), served.gofer.anonymous_kib(), Instant::now());
    let mut seen = 0;
    let rounds = 5;
    for _ in 0..rounds {
        seen += tree(&served.client, served.root);
    }
    let (cpu, time) = (served.gofer.cpu_ms() - cpu, start.elapsed());
    let after = served.gofer.anonymous_kib();
    assert_eq!(seen, rounds * DIRECTORIES * (FILES + 1));
    let find = find_cpu_ms(served.path(), rounds);
    say::measured(format_args!(
        "{seen} entries listed and asked for in {time:?}: server CPU {cpu} ms, find's {find} ms; \
         {} threads, memory {memory} to {after} KiB",
        served.gofer.threads()
    ));
    // A request for each entry costs more than a call for each; the fault was 30 cores.
    assert!(cpu < find.max(100) * 50, "{cpu} ms against {find}");
    assert!(after <= memory + 512, "{memory} KiB became {after}");
}

/// Lists everything below `dir`, and asks for each entry's attributes, as `ls -R -l` does; how many entries there are.
fn tree(client: &Raw, dir: FdId) -> usize {
    const DIRECTORY: u8 = 4;
    let (open, _) = client.open(dir, 0).expect("open");
    let entries = client.list(open);
    let mut seen = entries.len();
    for entry in entries {
        if entry.entry_type == DIRECTORY {
            let (_, inodes) = client.walk(dir, &[&entry.name]).expect("walk");
            seen += tree(client, inodes[0].control_fd);
            client.close(&[inodes[0].control_fd]);
        } else {
            assert_eq!(client.walk_stat(dir, &[&entry.name]).map(|stats| stats.len()), Ok(1));
        }
    }
    client.close(&[open]);
    seen
}

/// CPU time of `find`, which asks for each file's attributes, in milliseconds.
fn find_cpu_ms(root: &Path, rounds: usize) -> u64 {
    // The shell's own record of its children is the only one that other tests' children are not in.
    let script = format!(
        "for round in $(seq {rounds}); do find \"$0\" -printf '%s %i\\n' > /dev/null; done; \
         read -r line < /proc/$$/stat; echo \"$line\""
    );
    let output = Command::new("sh").args(["-c", &script]).arg(root).output().expect("sh");
    let stat = String::from_utf8(output.stdout).expect("a line");
    let (_, behind) = stat.rsplit_once(')').expect("a name");
    behind.split_whitespace().skip(13).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks") * 10).sum()
}

/// A client with all the channels that it may have.
struct Client {
    raw: Raw,
    channels: Vec<(ClientChannel, OwnedFd, u64, u64)>,
    file: FdId,
}

impl Client {
    fn connect(listening: &Listening) -> Self {
        let (raw, root) = listening.client();
        let file = raw.walk_to(root, "f");
        let (file, _) = raw.open(file, 0).expect("open");
        let mut channels = Vec::new();
        while let Ok(offer) = raw.channel() {
            let (offset, length) =
                (u64::try_from(offer.place.data_offset).expect("an offset"), offer.place.data_length);
            let memory = offer.memory.try_clone().expect("a descriptor");
            channels.push((offer.connect(), memory, offset, length));
        }
        Self { raw, channels, file }
    }

    /// Reads 1 MiB over every channel.
    fn burst(&self) {
        for (channel, ..) in &self.channels {
            let mut request = 0u64.to_le_bytes().to_vec();
            request.extend_from_slice(&self.file.0.to_le_bytes());
            request.extend_from_slice(&(1u64 << 20).to_le_bytes());
            let reply = channel.request(Mid::PREAD.0, &[&request]).expect("a reply");
            assert_eq!((reply.mid, reply.payload_len), (Mid::PREAD.0, (1 << 20) + 8));
        }
    }

    /// Gives back what the windows hold behind their first page, as either side may while a channel is idle.
    fn give_back(&self) {
        const HEAD: u64 = 4096;
        for (_, memory, offset, length) in &self.channels {
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(memory, mode, offset + HEAD, length - HEAD).expect("a hole");
        }
    }
}

/// Row B139.
#[test]
fn pages_of_channels_that_were_never_touched_cost_nothing_and_a_burst_can_be_given_back() {
    const CLIENTS: usize = 100;
    // Three descriptors a channel and some.
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).expect("its own limit");
    let listening = Listening::with(&[], |dir| fs::write(dir.join("f"), vec![1; 1 << 20]).expect("a file"));
    let gofer = &listening.gofer;
    let state = |when: &str| {
        let (anonymous, shared) = (gofer.anonymous_kib(), gofer.shared_kib());
        let (mappings, threads, tables) = (gofer.mappings(), gofer.threads(), gofer.status("VmPTE:"));
        say::measured(format_args!(
            "{when}: anonymous {anonymous} KiB, shared {shared} KiB, page tables {tables} KiB, {mappings} mappings, \
             {threads} threads, {} descriptors",
            gofer.descriptors().len()
        ));
        (anonymous, shared, mappings)
    };
    let idle = state("idle");
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(&listening)).collect();
    let channels: usize = clients.iter().map(|client| client.channels.len()).sum();
    assert_eq!(channels, CLIENTS * 4);

    let connected = state("100 clients with 4 channels each");
    // The page with the window's header, of which the client's mapping has its share.
    assert!(connected.1 <= idle.1 + channels as u64 * 8, "{} KiB of {channels} channels", connected.1);
    assert!(connected.2 <= idle.2 + channels * 8, "{} mappings", connected.2);

    clients.iter().for_each(Client::burst);
    let burst = state("after 1 MiB through each");
    assert!(burst.1 >= channels as u64 * 512, "what this test is about");
    assert!(burst.0 <= connected.0 + 1024, "file data is not copied: {} KiB", burst.0);

    clients.iter().for_each(Client::give_back);
    let given_back = state("given back");
    assert!(given_back.1 <= connected.1 + channels as u64 * 4, "{} KiB are left", given_back.1);
    // And the channels are as good as new.
    clients[0].burst();
    assert!(clients[0].raw.fstat(clients[0].file).is_ok());

    drop(clients);
    assert!(eventually(|| gofer.threads() == 1), "threads go with their clients");
    let left = state("all clients gone");
    // Not the mappings: the C library keeps the stacks of threads that ended, up to 40 MiB of address space.
    assert!(left.1 <= idle.1 + 8, "windows go with their clients: {} KiB", left.1);
    assert!(left.0 <= connected.0, "{} KiB", left.0);
}
