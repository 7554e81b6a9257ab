//! What programs do to files: the same outcome inside, and the same tree on the host afterwards.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::arms::{outcome, same};

/// Every kind of change that a shell can make, with what it says; times are set so that they can be compared.
const WORK: &str = r"
cd /data && umask 027
mkdir -p a/b/c && echo one >a/one && echo two >a/b/two && chmod 640 a/one && chmod 2755 a/b
ln a/one hard && ln -s a/one soft && ln -s nowhere dangling && mkfifo fifo
readlink soft; cat soft; cat dangling 2>/dev/null || echo no such
mv a/b/two a/renamed && mv a/b a/d && echo more >>a/renamed && wc -c <a/renamed
echo x >gone && exec 3<gone && rm gone && cat <&3 && exec 3<&-
dd if=/dev/zero of=big bs=1000 count=300 2>/dev/null && truncate -s 123456 big && wc -c <big
truncate -s 5000000 sparse && wc -c <sparse
mkdir full && echo y >full/y && rmdir full 2>/dev/null || echo not empty
chown 1000:100 a/one && chmod 4711 a/renamed && stat -c '%a %u %g %h' a/one a/renamed
i=0; while [ $i -lt 200 ]; do echo $i >d$i; i=$((i+1)); done; ls | wc -l
tar cf all.tar a soft hard && mkdir out && tar xf all.tar -C out && cat out/a/one && ls out
touch -d '2001-02-03 04:05:06' a/one a/renamed big && stat -c %Y a/one
sync && echo done
";

#[test]
fn a_shell_at_work_leaves_the_same_tree_and_says_the_same() {
    same(|sandbox| {
        let host = tempfile::tempdir().expect("a directory");
        let sandbox = sandbox.bind(host.path(), "/data", &["rbind", "rw"]);
        let output = outcome(&sandbox.run(&format!("/bin/busybox --install -s /bin; {WORK}")));
        assert!(output.ends_with("done\n"), "{output}");
        output + &tree(host.path())
    });
}

#[test]
fn a_destination_behind_a_link_lands_inside_the_root() {
    same(|sandbox| {
        let host = tempfile::tempdir().expect("a directory");
        fs::write(host.path().join("file"), "bound").expect("written");
        for (name, target) in [("relative", "../tmp/in"), ("absolute", "/tmp/in"), ("outside", "../../../../tmp/in")] {
            let _ = std::os::unix::fs::symlink(target, sandbox.root().join("data").join(name));
        }
        let mut sandbox = sandbox;
        for name in ["relative/a", "absolute/b", "outside/c", "missing/d"] {
            sandbox = sandbox.bind(host.path(), &format!("/data/{name}"), &["bind"]);
        }
        let file = host.path().join("file");
        let sandbox = sandbox.bind(&file, "/data/one", &["bind", "ro"]);
        outcome(&sandbox.run("cat /tmp/in/a/file /tmp/in/b/file /tmp/in/c/file /data/missing/d/file /data/one"))
    });
}

#[test]
fn changes_above_an_overlay_stay_in_the_sandbox() {
    same(|sandbox| {
        fs::write(sandbox.root().join("data/file"), "host").expect("written");
        let overlay = if sandbox.has_directfs() { "--overlay2=all:memory" } else { "--overlay2=root:memory" };
        let sandbox = sandbox.flag(overlay);
        let output = outcome(&sandbox.run("echo in >/data/file; rm /bin/cat; read line </data/file; echo $line"));
        assert_eq!(output, "Some(0): in\n");
        output + &tree(&sandbox.root().join("data"))
    });
}

/// One line for each file: name, type and mode, owner, links, size, time where it was set, content.
fn tree(root: &Path) -> String {
    let mut lines = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            let stat = path.symlink_metadata().expect("a file");
            let mut line = String::new();
            let name = path.strip_prefix(root).expect("below the root").display();
            let size = if stat.is_dir() { 0 } else { stat.len() };
            // Times that nobody set differ; those that were are of 2001.
            let time = if stat.mtime() < 1_000_000_000 { stat.mtime() } else { 0 };
            write!(line, "{name} {:o} {} {} {} {size} {time}", stat.mode(), stat.uid(), stat.gid(), stat.nlink())
                .expect("a line");
            if stat.is_symlink() {
                write!(line, " {}", fs::read_link(&path).expect("a link").display()).expect("a line");
            } else if stat.is_file() && !name.to_string().ends_with(".tar") {
                write!(line, " {:x}", hash(&fs::read(&path).expect("content"))).expect("a line");
            } else if stat.is_dir() {
                pending.push(path.clone());
            }
            lines.push(line);
        }
    }
    lines.sort();
    lines.join("\n")
}

/// FNV-1a, 64 bits: enough to tell two contents apart.
fn hash(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
