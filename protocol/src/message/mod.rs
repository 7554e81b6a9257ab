//! Every request beside its reply, one family per file, in protocol order within it.

use crate::Mid;

mod attr;
mod create;
mod dir;
mod io;
mod open;
mod remove;
mod session;
mod socket;
mod walk;
mod xattr;

pub use attr::*;
pub use create::*;
pub use dir::*;
pub use io::*;
pub use open::*;
pub use remove::*;
pub use session::*;
pub use socket::*;
pub use walk::*;
pub use xattr::*;

/// What ties a request to its number and its reply.
pub trait Request {
    /// The request's number; a success carries it too.
    const MID: Mid;
    /// Descriptors that a success donates at most.
    const DONATIONS: usize = 0;
    /// What a success carries.
    type Reply<'r>: crate::Wire<'r>;
}

/// Declares a message: fields in wire order, back to back, then `pad` zero bytes that receivers ignore.
macro_rules! message {
    ($(#[$meta:meta])* pub struct $name:ident $(<$life:lifetime>)? {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    } $(pad $pad:literal)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name $(<$life>)? {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        message!(@wire $name $(<$life>)? { $($field)* } $($pad)?);
    };
    (@wire $name:ident { $($field:ident)* } $($pad:literal)?) => {
        impl<'a> $crate::Wire<'a> for $name {
            message!(@body 'a { $($field)* } $($pad)?);
        }
    };
    (@wire $name:ident <$life:lifetime> { $($field:ident)* } $($pad:literal)?) => {
        impl<$life> $crate::Wire<$life> for $name<$life> {
            message!(@body $life { $($field)* } $($pad)?);
        }
    };
    (@body $life:lifetime { $($field:ident)* } $($pad:literal)?) => {
        #[allow(unused_variables, reason = "empty messages have neither fields nor padding")]
        fn take(input: &mut $crate::Decoder<$life>) -> Result<Self, $crate::Malformed> {
            $(let $field = input.take()?;)*
            $(input.bytes($pad)?;)?
            Ok(Self { $($field),* })
        }

        #[allow(unused_variables, reason = "empty messages have neither fields nor padding")]
        fn put(&self, out: &mut Vec<u8>) {
            $($crate::Wire::put(&self.$field, out);)*
            $(out.extend_from_slice(&[0; $pad]);)?
        }
    };
}
use message;

/// Ties requests to their numbers and replies; a number in brackets is how many descriptors a success donates.
macro_rules! requests {
    ($($name:ident $(<$life:lifetime>)? = $mid:ident $([$donations:literal])? -> $reply:ident $(<$r:lifetime>)?;)*) => {$(
        impl $(<$life>)? $crate::Request for $name $(<$life>)? {
            const MID: $crate::Mid = $crate::Mid::$mid;
            $(const DONATIONS: usize = $donations;)?
            type Reply<'r> = requests!(@reply $reply $(<$r>)?);
        }
    )*};
    (@reply $reply:ident <$r:lifetime>) => { $reply<$r> };
    (@reply $reply:ident) => { $reply };
}
use requests;

message! {
    /// A reply without content.
    pub struct Empty {}
}
