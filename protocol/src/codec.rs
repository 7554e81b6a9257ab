//! One cursor that decodes everything and can fail in one way only, and the trait that ties a type to its bytes.

use std::fmt;
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Errno, FdId, Gid, Mid, Uid};

/// The payload is shorter than its layout needs, or a length in it is a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Malformed> for Errno {
    fn from(_: Malformed) -> Self {
        Self::EIO
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("message is shorter than its layout needs")
    }
}

impl std::error::Error for Malformed {}

/// A type with a place on the wire.
pub trait Wire<'a>: Sized {
    /// Takes the value off the front of `input`.
    ///
    /// # Errors
    /// [`Malformed`] if `input` ends before the layout does.
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed>;

    /// Appends the value's bytes.
    fn put(&self, out: &mut Vec<u8>);
}

/// Decodes a whole payload. Bytes beyond the layout are ignored, as the protocol demands.
///
/// # Errors
/// [`Malformed`] if `payload` ends before the layout does.
pub fn decode<'a, T: Wire<'a>>(payload: &'a [u8]) -> Result<T, Malformed> {
    T::take(&mut Decoder::new(payload))
}

/// A cursor over bytes that the peer can no longer change.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the front of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been taken yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes exactly `len` bytes.
    ///
    /// # Errors
    /// [`Malformed`] if fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes one fixed-layout record.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    pub fn record<T: FromBytes>(&mut self) -> Result<T, Malformed> {
        let (value, rest) = T::read_from_prefix(self.rest).map_err(|_| Malformed)?;
        self.rest = rest;
        Ok(value)
    }

    /// Takes a 16-bit count and that many `T`s of any length, and returns the count and the bytes behind it: every
    /// element in them is known to decode.
    pub(crate) fn counted<T: Wire<'a>>(&mut self) -> Result<(u16, &'a [u8]), Malformed> {
        let count: u16 = self.take()?;
        let whole = self.rest;
        for _ in 0..count {
            let _: T = self.take()?;
        }
        let len = whole.len() - self.rest.len();
        Ok((count, whole.get(..len).ok_or(Malformed)?))
    }

    /// Takes whatever `T` is.
    ///
    /// # Errors
    /// [`Malformed`] if it is cut off.
    pub fn take<T: Wire<'a>>(&mut self) -> Result<T, Malformed> {
        T::take(self)
    }
}

/// Types whose bytes in memory are their bytes on the wire.
macro_rules! records {
    ($($type:ty),* $(,)?) => {$(
        impl<'a> $crate::codec::Wire<'a> for $type {
            fn take(input: &mut $crate::codec::Decoder<'a>) -> Result<Self, $crate::codec::Malformed> {
                input.record()
            }

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(zerocopy::IntoBytes::as_bytes(self));
            }
        }
    )*};
}
pub(crate) use records;

records!(u8, u16, u32, u64, i32, i64, FdId, Uid, Gid, Mid);

/// Bytes behind a 16-bit length: a name, a link target, an attribute's value. No character set, no terminator.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SizedString<'a>(&'a [u8]);

impl<'a> SizedString<'a> {
    /// None if `bytes` is longer than a 16-bit length can say; the reference would silently cut it.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        u16::try_from(bytes.len()).ok().map(|_| Self(bytes))
    }

    /// The bytes, without the length.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl fmt::Debug for SizedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<'a> Wire<'a> for SizedString<'a> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let len: u16 = input.take()?;
        input.bytes(usize::from(len)).map(Self)
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.0.len(), out);
        out.extend_from_slice(self.0);
    }
}

/// A 16-bit count, then that many fixed-layout records, unaligned: read one at a time, never as a slice.
#[derive(Clone, Copy)]
pub struct Array<'a, T> {
    bytes: &'a [u8],
    element: PhantomData<T>,
}

impl<'a, T: FromBytes + IntoBytes + Immutable> Array<'a, T> {
    /// None if there are more elements than a 16-bit count can say.
    #[must_use]
    pub fn new(elements: &'a [T]) -> Option<Self> {
        u16::try_from(elements.len()).ok().map(|_| Self { bytes: elements.as_bytes(), element: PhantomData })
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(size_of::<T>()).unwrap_or(0)
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements, each copied out.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        self.bytes.chunks_exact(size_of::<T>().max(1)).filter_map(|chunk| T::read_from_bytes(chunk).ok())
    }
}

impl<T> PartialEq for Array<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T: FromBytes + IntoBytes + Immutable + fmt::Debug> fmt::Debug for Array<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: FromBytes + IntoBytes + Immutable> Wire<'a> for Array<'a, T> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let count: u16 = input.take()?;
        let bytes = input.bytes(usize::from(count) * size_of::<T>())?;
        Ok(Self { bytes, element: PhantomData })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.len(), out);
        out.extend_from_slice(self.bytes);
    }
}

/// A 16-bit count, then that many [`SizedString`]s. Decoding checks every length, so that walking it cannot fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StringArray<'a> {
    count: u16,
    encoded: &'a [u8],
}

impl<'a> StringArray<'a> {
    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = Decoder::new(self.encoded);
        std::iter::from_fn(move || rest.take().ok().map(SizedString::as_bytes))
    }
}

impl fmt::Debug for StringArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(SizedString)).finish()
    }
}

impl<'a> Wire<'a> for StringArray<'a> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let (count, encoded) = input.counted::<SizedString<'_>>()?;
        Ok(Self { count, encoded })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.count.put(out);
        out.extend_from_slice(self.encoded);
    }
}

/// Strings on their way to the wire, for [`StringArray`]s that are sent.
#[derive(Clone, Debug, Default)]
pub struct StringArrayBuf {
    count: u16,
    encoded: Vec<u8>,
}

impl StringArrayBuf {
    /// Gathers `strings`; none if one of them, or their number, exceeds a 16-bit length.
    pub fn new<'s>(strings: impl IntoIterator<Item = &'s [u8]>) -> Option<Self> {
        let mut all = Self::default();
        for string in strings {
            all.count = all.count.checked_add(1)?;
            SizedString::new(string)?.put(&mut all.encoded);
        }
        Some(all)
    }

    /// The array that goes into a message.
    #[must_use]
    pub fn as_array(&self) -> StringArray<'_> {
        StringArray { count: self.count, encoded: &self.encoded }
    }
}

/// Bytes behind a length of type `L`, for file data; bytes beyond the length are ignored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Data<'a, L> {
    bytes: &'a [u8],
    length: PhantomData<L>,
}

impl<'a, L: TryFrom<usize>> Data<'a, L> {
    /// None if `L` cannot say how long `bytes` is.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        L::try_from(bytes.len()).ok().map(|_| Self { bytes, length: PhantomData })
    }

    /// The bytes, without the length.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }
}

impl<L> fmt::Debug for Data<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

impl<'a, L: Wire<'a> + TryFrom<usize> + TryInto<usize>> Wire<'a> for Data<'a, L> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let len: usize = L::take(input)?.try_into().map_err(|_| Malformed)?;
        Ok(Self { bytes: input.bytes(len)?, length: PhantomData })
    }

    fn put(&self, out: &mut Vec<u8>) {
        // `new` and `take` have made sure that the length fits.
        if let Ok(len) = L::try_from(self.bytes.len()) {
            len.put(out);
            out.extend_from_slice(self.bytes);
        }
    }
}

/// Bytes that a sender writes as zeroes and a receiver ignores, in the middle of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Padding<const LEN: usize>;

impl<'a, const LEN: usize> Wire<'a> for Padding<LEN> {
    fn take(input: &mut Decoder<'a>) -> Result<Self, Malformed> {
        input.bytes(LEN).map(|_| Self)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; LEN]);
    }
}

/// Appends a 16-bit length that was checked when the value was made.
fn put_length(len: usize, out: &mut Vec<u8>) {
    u16::try_from(len).unwrap_or(u16::MAX).put(out);
}
