//! The writer: RFC 8785, straight from a type.
//!
//! Going through a tree would be shorter, but `serde_json` turns a NaN into
//! `null` on the way, and what is hashed must not change silently. It would
//! also build a map for every struct only to throw it away.

use std::borrow::Cow;

use serde::ser::{self, Serialize};
use serde_json::Value;

use super::write::{
    ENOUGH_FOR_MOST, orders_by_bytes, out_of_range, write_double, write_signed, write_string,
    write_unsigned,
};
use super::{MAX_DEPTH, WriteError};

/// The canonical bytes of `value`.
///
/// The same as those of its tree, save that what JSON cannot hold is an error.
pub fn canonical_of<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::with_capacity(ENOUGH_FOR_MOST);
    value.serialize(Writer {
        out: &mut out,
        room: MAX_DEPTH,
    })?;
    Ok(out)
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// How many more levels may be entered.
    room: usize,
}

impl<'a> Writer<'a> {
    fn put(self, bytes: &[u8]) -> Result<(), WriteError> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn array(self) -> Result<Array<'a>, WriteError> {
        let room = self.room.checked_sub(1).ok_or(WriteError::TooDeep)?;
        self.out.push(b'[');
        Ok(Array {
            out: self.out,
            room,
            is_empty: true,
            closing: b"]",
        })
    }

    fn object(self) -> Result<Object<'a>, WriteError> {
        let room = self.room.checked_sub(1).ok_or(WriteError::TooDeep)?;
        self.out.push(b'{');
        Ok(Object {
            start: self.out.len(),
            out: self.out,
            room,
            members: Vec::new(),
            key: None,
            closing: b"}",
        })
    }

    /// `{"name":`, to which the caller adds a value and `}`.
    fn variant(self, name: &str) -> Result<Self, WriteError> {
        let room = self.room.checked_sub(1).ok_or(WriteError::TooDeep)?;
        self.out.push(b'{');
        write_string(name, self.out);
        self.out.push(b':');
        Ok(Self {
            out: self.out,
            room,
        })
    }
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Object<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), WriteError> {
        self.put(if value { b"true" } else { b"false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), WriteError> {
        write_signed(value.into(), self.out)
    }

    fn serialize_i16(self, value: i16) -> Result<(), WriteError> {
        write_signed(value.into(), self.out)
    }

    fn serialize_i32(self, value: i32) -> Result<(), WriteError> {
        write_signed(value.into(), self.out)
    }

    fn serialize_i64(self, value: i64) -> Result<(), WriteError> {
        write_signed(value, self.out)
    }

    fn serialize_i128(self, value: i128) -> Result<(), WriteError> {
        let small = i64::try_from(value).map_err(|_| out_of_range(value))?;
        write_signed(small, self.out)
    }

    fn serialize_u8(self, value: u8) -> Result<(), WriteError> {
        write_unsigned(value.into(), self.out)
    }

    fn serialize_u16(self, value: u16) -> Result<(), WriteError> {
        write_unsigned(value.into(), self.out)
    }

    fn serialize_u32(self, value: u32) -> Result<(), WriteError> {
        write_unsigned(value.into(), self.out)
    }

    fn serialize_u64(self, value: u64) -> Result<(), WriteError> {
        write_unsigned(value, self.out)
    }

    fn serialize_u128(self, value: u128) -> Result<(), WriteError> {
        let small = u64::try_from(value).map_err(|_| out_of_range(value))?;
        write_unsigned(small, self.out)
    }

    fn serialize_f32(self, value: f32) -> Result<(), WriteError> {
        write_double(value.into(), self.out)
    }

    fn serialize_f64(self, value: f64) -> Result<(), WriteError> {
        write_double(value, self.out)
    }

    fn serialize_char(self, value: char) -> Result<(), WriteError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        write_string(value, self.out);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), WriteError> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WriteError> {
        self.put(b"null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), WriteError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        let Writer { out, room } = self.variant(variant)?;
        value.serialize(Writer { out, room })?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Array<'a>, WriteError> {
        self.array()
    }

    fn serialize_tuple(self, _length: usize) -> Result<Array<'a>, WriteError> {
        self.array()
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Array<'a>, WriteError> {
        self.array()
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Array<'a>, WriteError> {
        Ok(Array {
            closing: b"]}",
            ..self.variant(variant)?.array()?
        })
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Object<'a>, WriteError> {
        self.object()
    }

    fn serialize_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Object<'a>, WriteError> {
        self.object()
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Object<'a>, WriteError> {
        Ok(Object {
            closing: b"}}",
            ..self.variant(variant)?.object()?
        })
    }
}

/// An array being written.
struct Array<'a> {
    out: &'a mut Vec<u8>,
    room: usize,
    is_empty: bool,
    closing: &'static [u8],
}

impl Array<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        value.serialize(Writer {
            out: self.out,
            room: self.room,
        })
    }

    fn close(self) -> Result<(), WriteError> {
        self.out.extend_from_slice(self.closing);
        Ok(())
    }
}

/// An object being written: members as they come, put in order at the end.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    room: usize,
    /// Where the first member begins in `out`.
    start: usize,
    members: Vec<Member>,
    /// The key whose value has not come yet.
    key: Option<String>,
    closing: &'static [u8],
}

struct Member {
    key: Cow<'static, str>,
    /// Where its bytes begin in `out`, after the comma.
    start: usize,
    end: usize,
}

impl Object<'_> {
    fn member<T: Serialize + ?Sized>(
        &mut self,
        key: Cow<'static, str>,
        value: &T,
    ) -> Result<(), WriteError> {
        if !self.members.is_empty() {
            self.out.push(b',');
        }
        let start = self.out.len();
        write_string(&key, self.out);
        self.out.push(b':');
        value.serialize(Writer {
            out: self.out,
            room: self.room,
        })?;
        let end = self.out.len();
        self.members.push(Member { key, start, end });
        Ok(())
    }

    fn close(mut self) -> Result<(), WriteError> {
        if !self.is_in_order() {
            self.put_in_order()?;
        }
        self.out.extend_from_slice(self.closing);
        Ok(())
    }

    /// Whether every key comes strictly after the one before it.
    fn is_in_order(&self) -> bool {
        self.members
            .iter()
            .all(|member| orders_by_bytes(&member.key))
            && self.members.is_sorted_by(|one, next| one.key < next.key)
    }

    fn put_in_order(&mut self) -> Result<(), WriteError> {
        let utf16 = |member: &Member| member.key.encode_utf16().collect::<Vec<_>>();
        self.members.sort_by_cached_key(utf16);
        let mut last = None;
        let mut ordered = Vec::with_capacity(self.out.len() - self.start);
        for member in &self.members {
            if last.replace(&member.key) == Some(&member.key) {
                let key = member.key.to_string();
                return Err(WriteError::DuplicateKey { key });
            }
            if !ordered.is_empty() {
                ordered.push(b',');
            }
            ordered.extend_from_slice(self.out.get(member.start..member.end).unwrap_or_default());
        }
        self.out.truncate(self.start);
        self.out.extend_from_slice(&ordered);
        Ok(())
    }
}

/// The text of a map's key: a text itself, or an integer in digits, as in `serde_json`.
fn key_text<T: Serialize + ?Sized>(key: &T) -> Result<String, WriteError> {
    match serde_json::to_value(key).map_err(ser::Error::custom)? {
        Value::String(text) => Ok(text),
        Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        _ => Err(WriteError::KeyNotText),
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), WriteError> {
        self.key = Some(key_text(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), WriteError> {
        let key = self.key.take().ok_or(WriteError::KeyNotText)?;
        self.member(Cow::Owned(key), value)
    }

    fn end(self) -> Result<(), WriteError> {
        self.close()
    }
}

/// The remaining kinds of array and object differ in the name of the method only.
macro_rules! same_as {
    ($($type:ident: $kind:ident, $method:ident($($key:ident)?) => $own:ident;)*) => {$(
        impl ser::$kind for $type<'_> {
            type Ok = ();
            type Error = WriteError;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($key: &'static str,)?
                value: &T,
            ) -> Result<(), WriteError> {
                self.$own($(Cow::Borrowed($key),)? value)
            }

            fn end(self) -> Result<(), WriteError> {
                self.close()
            }
        }
    )*};
}

same_as! {
    Array: SerializeSeq, serialize_element() => item;
    Array: SerializeTuple, serialize_element() => item;
    Array: SerializeTupleStruct, serialize_field() => item;
    Array: SerializeTupleVariant, serialize_field() => item;
    Object: SerializeStruct, serialize_field(key) => member;
    Object: SerializeStructVariant, serialize_field(key) => member;
}
