//! Fields to messages, one function a family, in the order of the families' files.

use gofer_protocol::Mid;
use gofer_protocol::codec::{Array, Data, Padding};
use gofer_protocol::message::*;
use gofer_protocol::record::{Dirent, Dirents, DirentsBuf, StatFs, StatxMask};

use crate::fields::{Fields, Vector, sized};

/// Asserts that a request's bytes and its fields are the same thing.
pub(crate) fn check_request(v: &Vector) {
    let f = &v.fields;
    match v.mid {
        Mid::MOUNT => v.is(&MountRequest),
        Mid::CHANNEL => v.is(&ChannelRequest),
        Mid::FSTAT => v.is(&FStatRequest { fd: f.fd("fd") }),
        Mid::SET_STAT => v.is(&set_stat(f)),
        Mid::FSTAT_FS => v.is(&FStatFsRequest { fd: f.fd("fd") }),
        Mid::READ_LINK_AT => v.is(&ReadLinkAtRequest { fd: f.fd("fd") }),
        Mid::WALK => {
            let path = f.strings("path");
            v.is(&WalkRequest { dir_fd: f.fd("dir_fd"), path: path.as_array() });
        }
        Mid::WALK_STAT => {
            let path = f.strings("path");
            v.is(&WalkStatRequest { dir_fd: f.fd("dir_fd"), path: path.as_array() });
        }
        Mid::OPEN_AT | Mid::OPEN_CREATE_AT | Mid::CLOSE | Mid::FLUSH => open_request(v),
        Mid::FSYNC | Mid::PWRITE | Mid::PREAD | Mid::FALLOCATE => io_request(v),
        Mid::MKDIR_AT | Mid::MKNOD_AT | Mid::SYMLINK_AT | Mid::LINK_AT => create_request(v),
        Mid::UNLINK_AT | Mid::RENAME_AT | Mid::RENAME_AT2 => remove_request(v),
        Mid::GETDENTS64 => v.is(&Getdents64Request { dir_fd: f.fd("dir_fd"), count: f.int("count") }),
        Mid::FGET_XATTR | Mid::FSET_XATTR | Mid::FLIST_XATTR | Mid::FREMOVE_XATTR => xattr_request(v),
        Mid::BIND_AT | Mid::LISTEN | Mid::ACCEPT | Mid::CONNECT | Mid::CONNECT_WITH_CREDS => socket_request(v),
        other => panic!("{}: no request {other:?}", v.name),
    }
}

/// Asserts that a reply's bytes and its fields are the same thing.
pub(crate) fn check_reply(v: &Vector) {
    let f = &v.fields;
    match v.mid {
        Mid::ERROR => v.is(&ErrorReply { errno: f.int("errno") }),
        Mid::MOUNT => v.is(&MountReply {
            root: f.inode("root"),
            max_message_size: f.int("max_message_size"),
            supported: Array::new(&f.mids("supported_ms")).unwrap(),
        }),
        Mid::CHANNEL => {
            v.is(&ChannelReply { data_offset: f.int("data_offset"), data_length: f.int("data_length") });
        }
        Mid::FSTAT => v.is(&f.stat("stat")),
        Mid::SET_STAT => v.is(&SetStatReply {
            failure_mask: StatxMask(f.int("failure_mask")),
            failure_errno: f.int("failure_errno"),
        }),
        Mid::FSTAT_FS => v.is(&stat_fs(f)),
        Mid::WALK => v.is(&WalkReply { status: f.status(), inodes: Array::new(&f.inodes("inodes")).unwrap() }),
        Mid::WALK_STAT => v.is(&WalkStatReply { stats: Array::new(&f.stats("stats")).unwrap() }),
        Mid::READ_LINK_AT => v.is(&ReadLinkAtReply { target: sized(&f.bytes("target")) }),
        Mid::OPEN_AT => v.is(&OpenAtReply { open_fd: f.fd("open_fd") }),
        Mid::OPEN_CREATE_AT => v.is(&OpenCreateAtReply { child: f.inode("child"), open_fd: f.fd("new_fd") }),
        Mid::PWRITE => v.is(&PWriteReply { count: f.int("count") }),
        Mid::PREAD => v.is(&PReadReply { data: Data::new(&f.bytes("buf")).unwrap() }),
        Mid::MKDIR_AT | Mid::MKNOD_AT | Mid::SYMLINK_AT | Mid::LINK_AT => v.is(&f.inode("child")),
        Mid::GETDENTS64 => getdents64_reply(v),
        Mid::FGET_XATTR => v.is(&FGetXattrReply { value: sized(&f.bytes("value")) }),
        Mid::FLIST_XATTR => v.is(&FListXattrReply { names: f.strings("xattrs").as_array() }),
        Mid::BIND_AT => v.is(&BindAtReply { child: f.inode("child"), bound_fd: f.fd("bound_socket_fd") }),
        Mid::ACCEPT => v.is(&AcceptReply { peer_addr: sized(&f.bytes("peer_addr")) }),
        Mid::CLOSE
        | Mid::FLUSH
        | Mid::FSYNC
        | Mid::FALLOCATE
        | Mid::UNLINK_AT
        | Mid::RENAME_AT
        | Mid::RENAME_AT2
        | Mid::FSET_XATTR
        | Mid::FREMOVE_XATTR
        | Mid::LISTEN
        | Mid::CONNECT
        | Mid::CONNECT_WITH_CREDS => v.is(&Empty {}),
        other => panic!("{}: no reply {other:?}", v.name),
    }
}

fn set_stat(f: &Fields) -> SetStatRequest {
    SetStatRequest {
        fd: f.fd("fd"),
        mask: StatxMask(f.int("mask")),
        mode: f.int("mode"),
        uid: f.uid(),
        gid: f.gid(),
        size: f.int("size"),
        atime: f.timespec("atime"),
        mtime: f.timespec("mtime"),
    }
}

fn stat_fs(f: &Fields) -> StatFs {
    StatFs {
        fs_type: f.int("type"),
        block_size: f.int("block_size"),
        blocks: f.int("blocks"),
        blocks_free: f.int("blocks_free"),
        blocks_available: f.int("blocks_available"),
        files: f.int("files"),
        files_free: f.int("files_free"),
        name_length: f.int("name_length"),
    }
}

fn open_request(v: &Vector) {
    let f = &v.fields;
    match v.mid {
        Mid::OPEN_AT => v.is(&OpenAtRequest { fd: f.fd("fd"), flags: f.int("flags") }),
        Mid::OPEN_CREATE_AT => {
            v.is(&OpenCreateAtRequest { create: f.create(), flags: f.int("flags"), name: sized(&f.bytes("name")) });
        }
        Mid::CLOSE => v.is(&CloseRequest { fds: Array::new(&f.fds("fds")).unwrap() }),
        _ => v.is(&FlushRequest { fd: f.fd("fd") }),
    }
}

fn io_request(v: &Vector) {
    let f = &v.fields;
    match v.mid {
        Mid::FSYNC => v.is(&FSyncRequest { fds: Array::new(&f.fds("fds")).unwrap() }),
        Mid::PWRITE => {
            let data = f.bytes("buf");
            let (offset, fd) = (f.int("offset"), f.fd("fd"));
            v.is(&PWriteRequest { offset, fd, data: Data::new(&data).unwrap() });
            // A server takes the head alone and hands the data to the host.
            v.means(&PWriteHead { offset, fd, num_bytes: u32::try_from(data.len()).unwrap() });
            assert_eq!(v.bytes.get(PWriteHead::LEN..), Some(&data[..]));
        }
        Mid::PREAD => v.is(&PReadRequest { offset: f.int("offset"), fd: f.fd("fd"), count: f.int("count") }),
        _ => v.is(&FAllocateRequest {
            fd: f.fd("fd"),
            mode: f.int("mode"),
            offset: f.int("offset"),
            length: f.int("length"),
        }),
    }
}

fn create_request(v: &Vector) {
    let f = &v.fields;
    let name = f.bytes("name");
    let name = sized(&name);
    match v.mid {
        Mid::MKDIR_AT => v.is(&MkdirAtRequest { create: f.create(), name }),
        Mid::MKNOD_AT => {
            v.is(&MknodAtRequest { create: f.create(), minor: f.int("minor"), major: f.int("major"), name });
        }
        Mid::SYMLINK_AT => v.is(&SymlinkAtRequest {
            dir_fd: f.fd("dir_fd"),
            uid: f.uid(),
            gid: f.gid(),
            name,
            target: sized(&f.bytes("target")),
        }),
        _ => v.is(&LinkAtRequest { dir_fd: f.fd("dir_fd"), target: f.fd("target"), name }),
    }
}

fn remove_request(v: &Vector) {
    let f = &v.fields;
    if v.mid == Mid::UNLINK_AT {
        let name = f.bytes("name");
        v.is(&UnlinkAtRequest { dir_fd: f.fd("dir_fd"), flags: f.int("flags"), name: sized(&name) });
        return;
    }
    let (old_dir, new_dir) = (f.fd("old_dir"), f.fd("new_dir"));
    let (old_name, new_name) = (f.bytes("old_name"), f.bytes("new_name"));
    let (old_name, new_name) = (sized(&old_name), sized(&new_name));
    if v.mid == Mid::RENAME_AT {
        v.is(&RenameAtRequest { old_dir, new_dir, old_name, new_name });
    } else {
        v.is(&RenameAt2Request { old_dir, new_dir, old_name, new_name, flags: f.int("flags") });
    }
}

fn getdents64_reply(v: &Vector) {
    let mut encoded = Vec::new();
    let mut dirents = DirentsBuf::new(&mut encoded, usize::MAX);
    for entry in v.fields.value("dirents").as_array().unwrap() {
        let f = Fields::new(entry);
        let name = f.bytes("name");
        assert!(dirents.push(&Dirent {
            ino: f.int("ino"),
            dev_minor: f.int("dev_minor"),
            dev_major: f.int("dev_major"),
            off: f.int("off"),
            entry_type: f.int("type"),
            name: sized(&name),
        }));
        f.assert_all_used("an entry");
    }
    let dirents: Dirents<'_> = gofer_protocol::codec::decode(&encoded).unwrap();
    v.is(&Getdents64Reply { dirents });
}

fn xattr_request(v: &Vector) {
    let f = &v.fields;
    let fd = f.fd("fd");
    if v.mid == Mid::FLIST_XATTR {
        v.is(&FListXattrRequest { fd, size: f.int("size") });
        return;
    }
    let name = f.bytes("name");
    let name = sized(&name);
    match v.mid {
        Mid::FGET_XATTR => v.is(&FGetXattrRequest { fd, buf_size: f.int("buf_size"), name }),
        Mid::FSET_XATTR => {
            v.is(&FSetXattrRequest { fd, flags: f.int("flags"), name, value: sized(&f.bytes("value")) });
        }
        _ => v.is(&FRemoveXattrRequest { fd, name }),
    }
}

fn socket_request(v: &Vector) {
    let f = &v.fields;
    match v.mid {
        Mid::BIND_AT => {
            v.is(&BindAtRequest { create: f.create(), sock_type: f.int("sock_type"), name: sized(&f.bytes("name")) })
        }
        Mid::LISTEN => v.is(&ListenRequest { fd: f.fd("fd"), backlog: f.int("backlog") }),
        Mid::ACCEPT => v.is(&AcceptRequest { fd: f.fd("fd") }),
        Mid::CONNECT => v.is(&ConnectRequest { fd: f.fd("fd"), sock_type: f.int("sock_type") }),
        _ => v.is(&ConnectWithCredsRequest {
            fd: f.fd("fd"),
            sock_type: f.int("sock_type"),
            padding: Padding,
            uid: f.uid(),
            gid: f.gid(),
        }),
    }
}
