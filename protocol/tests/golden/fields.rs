//! A test vector, and its fields as the types that messages are made of.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;

use gofer_protocol::codec::{SizedString, StringArrayBuf, decode};
use gofer_protocol::message::WalkStatus;
use gofer_protocol::record::{CreateCommon, FileMode, Inode, Statx, StatxMask, Timespec, Timestamp};
use gofer_protocol::{FdId, Gid, Mid, Uid, Wire};
use serde_json::{Map, Value};

/// One recorded message: what it says, and its bytes.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) mid: Mid,
    pub(crate) direction: String,
    pub(crate) fields: Fields,
    pub(crate) bytes: Vec<u8>,
}

impl Vector {
    pub(crate) fn new(vector: &Value) -> Self {
        Self {
            name: text(&vector["name"]),
            mid: Mid(vector["mid"].as_u64().unwrap().try_into().unwrap()),
            direction: text(&vector["direction"]),
            fields: Fields::new(&vector["fields"]),
            bytes: unhex(vector["hex"].as_str().unwrap()),
        }
    }

    /// Asserts that `message`, which was made from the fields, has the recorded bytes, and that the bytes mean it.
    pub(crate) fn is<'a, T: Wire<'a> + PartialEq + Debug>(&'a self, message: &T) {
        let mut encoded = Vec::new();
        message.put(&mut encoded);
        assert_eq!(hex(&encoded), hex(&self.bytes), "encoding of {}", self.name);
        self.means(message);
    }

    /// Asserts that the recorded bytes decode to `message`, which was made from the fields.
    pub(crate) fn means<'a, T: Wire<'a> + PartialEq + Debug>(&'a self, message: &T) {
        assert_eq!(decode::<T>(&self.bytes).as_ref(), Ok(message), "meaning of {}", self.name);
        self.fields.assert_all_used(&self.name);
    }
}

/// The fields of a vector or of an object within it. Remembers what was asked for, so that no field goes unchecked.
pub(crate) struct Fields {
    object: Map<String, Value>,
    used: RefCell<BTreeSet<String>>,
}

impl Fields {
    pub(crate) fn new(object: &Value) -> Self {
        Self { object: object.as_object().unwrap().clone(), used: RefCell::default() }
    }

    pub(crate) fn value(&self, key: &str) -> &Value {
        self.used.borrow_mut().insert(key.to_owned());
        self.object.get(key).unwrap_or_else(|| panic!("no field {key}"))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    pub(crate) fn assert_all_used(&self, of: &str) {
        let all: BTreeSet<String> = self.object.keys().cloned().collect();
        assert_eq!(*self.used.borrow(), all, "fields of {of} that were checked, and that there are");
    }

    /// A field of its own, used up as a whole.
    pub(crate) fn object(&self, key: &str) -> Self {
        Self::new(self.value(key))
    }

    pub(crate) fn int<T: TryFrom<i128>>(&self, key: &str) -> T {
        int(self.value(key))
    }

    pub(crate) fn fd(&self, key: &str) -> FdId {
        FdId(self.int(key))
    }

    pub(crate) fn fds(&self, key: &str) -> Vec<FdId> {
        self.value(key).as_array().unwrap().iter().map(|fd| FdId(int(fd))).collect()
    }

    pub(crate) fn mids(&self, key: &str) -> Vec<Mid> {
        self.value(key).as_array().unwrap().iter().map(|mid| Mid(int(mid))).collect()
    }

    pub(crate) fn uid(&self) -> Uid {
        Uid(self.int("uid"))
    }

    pub(crate) fn gid(&self) -> Gid {
        Gid(self.int("gid"))
    }

    pub(crate) fn bytes(&self, key: &str) -> Vec<u8> {
        bytes(self.value(key))
    }

    pub(crate) fn strings(&self, key: &str) -> StringArrayBuf {
        let strings: Vec<Vec<u8>> = self.value(key).as_array().unwrap().iter().map(bytes).collect();
        StringArrayBuf::new(strings.iter().map(Vec::as_slice)).unwrap()
    }

    pub(crate) fn create(&self) -> CreateCommon {
        CreateCommon::new(self.fd("dir_fd"), self.uid(), self.gid(), FileMode(self.int("mode")))
    }

    pub(crate) fn status(&self) -> WalkStatus {
        WalkStatus(self.int("status"))
    }

    pub(crate) fn timespec(&self, key: &str) -> Timespec {
        let value = self.value(key);
        Timespec { seconds: int(&value[0]), nanoseconds: int(&value[1]) }
    }

    pub(crate) fn stat(&self, key: &str) -> Statx {
        statx(self.value(key))
    }

    pub(crate) fn stats(&self, key: &str) -> Vec<Statx> {
        self.value(key).as_array().unwrap().iter().map(statx).collect()
    }

    pub(crate) fn inode(&self, key: &str) -> Inode {
        inode(self.value(key))
    }

    pub(crate) fn inodes(&self, key: &str) -> Vec<Inode> {
        self.value(key).as_array().unwrap().iter().map(inode).collect()
    }
}

/// A string that is known to fit in a message.
pub(crate) fn sized(bytes: &[u8]) -> SizedString<'_> {
    SizedString::new(bytes).unwrap()
}

fn inode(value: &Value) -> Inode {
    let fields = Fields::new(value);
    let inode = Inode { control_fd: fields.fd("control_fd"), stat: fields.stat("stat") };
    fields.assert_all_used("an inode");
    inode
}

fn statx(value: &Value) -> Statx {
    let fields = Fields::new(value);
    let timestamp = |key| {
        let value = fields.value(key);
        Timestamp::new(int(&value[0]), int(&value[1]))
    };
    // The padding has no name, so that a record starts from zeroes.
    let mut stat = Statx::default();
    stat.mask = StatxMask(fields.int("mask"));
    stat.blksize = fields.int("blksize");
    stat.attributes = fields.int("attributes");
    stat.nlink = fields.int("nlink");
    stat.uid = fields.int("uid");
    stat.gid = fields.int("gid");
    stat.mode = FileMode(fields.int("mode"));
    stat.ino = fields.int("ino");
    stat.size = fields.int("size");
    stat.blocks = fields.int("blocks");
    stat.attributes_mask = fields.int("attributes_mask");
    stat.atime = timestamp("atime");
    stat.btime = timestamp("btime");
    stat.ctime = timestamp("ctime");
    stat.mtime = timestamp("mtime");
    stat.rdev_major = fields.int("rdev_major");
    stat.rdev_minor = fields.int("rdev_minor");
    stat.dev_major = fields.int("dev_major");
    stat.dev_minor = fields.int("dev_minor");
    fields.assert_all_used("a statx");
    stat
}

fn int<T: TryFrom<i128>>(value: &Value) -> T {
    let wide = value.as_u64().map(i128::from).or_else(|| value.as_i64().map(i128::from)).unwrap();
    T::try_from(wide).unwrap_or_else(|_| panic!("{wide} does not fit"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Plain text, or `{"hex": ...}`.
fn bytes(value: &Value) -> Vec<u8> {
    match value.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => unhex(value["hex"].as_str().unwrap()),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    assert_eq!(hex.len() % 2, 0);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
