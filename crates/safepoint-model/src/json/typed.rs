//! From a tree to a type, and the way to the value that did not fit.
//!
//! What is accepted is decided by `serde_json` alone. Only after it has
//! refused is the tree walked a second time, by a deserializer that does the
//! same and remembers the way.

use std::cell::RefCell;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Error, Value};

use super::{Limits, ReadAsError, read};

/// Reads one strict JSON document as a `T`.
pub fn read_as<T: DeserializeOwned>(input: &[u8], limits: Limits) -> Result<T, ReadAsError> {
    let value = read(input, limits).map_err(ReadAsError::Json)?;
    T::deserialize(&value).map_err(|error| ReadAsError::Type {
        message: error.to_string(),
        path: path_of_fault::<T>(&value),
    })
}

/// JSON Pointer to the innermost value of `value` that keeps it from being a `T`.
fn path_of_fault<'de, T: Deserialize<'de>>(value: &'de Value) -> String {
    let fault = RefCell::new(None);
    let place = Place {
        value,
        path: String::new(),
        fault: &fault,
    };
    match T::deserialize(place) {
        Ok(_) => String::new(),
        Err(_) => fault.take().unwrap_or_default(),
    }
}

/// A value, the way to it, and where to leave the way should it be at fault.
struct Place<'de, 'f> {
    value: &'de Value,
    path: String,
    fault: &'f RefCell<Option<String>>,
}

impl<'de, 'f> Place<'de, 'f> {
    /// Keeps the path of the first result that failed: the innermost one.
    fn note<T>(
        path: String,
        fault: &RefCell<Option<String>>,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        if result.is_err() {
            fault.borrow_mut().get_or_insert(path);
        }
        result
    }

    fn below(&self, value: &'de Value, step: &str) -> Self {
        let step = step.replace('~', "~0").replace('/', "~1");
        Self {
            value,
            path: format!("{}/{step}", self.path),
            fault: self.fault,
        }
    }
}

impl<'de> Deserializer<'de> for Place<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let (path, fault) = (self.path.clone(), self.fault);
        let result = match self.value {
            Value::Array(items) => visitor.visit_seq(Items {
                place: self,
                items: items.iter().enumerate(),
            }),
            Value::Object(members) => visitor.visit_map(Members {
                place: self,
                members: members.iter(),
                value: None,
            }),
            scalar => scalar.deserialize_any(visitor),
        };
        Self::note(path, fault, result)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (path, fault) = (self.path.clone(), self.fault);
        let result = visitor.visit_newtype_struct(self);
        Self::note(path, fault, result)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (path, fault) = (self.path.clone(), self.fault);
        let only = self.value.as_object().filter(|members| members.len() == 1);
        let result = match only.and_then(|members| members.iter().next()) {
            Some((key, value)) => visitor.visit_enum(Variant {
                name: key,
                place: self.below(value, key),
            }),
            None => self.value.deserialize_enum(name, variants, visitor),
        };
        Self::note(path, fault, result)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

struct Items<'de, 'f> {
    place: Place<'de, 'f>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((index, item)) = self.items.next() else {
            return Ok(None);
        };
        seed.deserialize(self.place.below(item, &index.to_string()))
            .map(Some)
    }
}

struct Members<'de, 'f> {
    place: Place<'de, 'f>,
    members: serde_json::map::Iter<'de>,
    value: Option<Place<'de, 'f>>,
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((key, value)) = self.members.next() else {
            return Ok(None);
        };
        self.value = Some(self.place.below(value, key));
        seed.deserialize(Value::String(key.clone())).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.value.take() {
            Some(place) => seed.deserialize(place),
            None => Err(serde::de::Error::custom("value is missing")),
        }
    }
}

struct Variant<'de, 'f> {
    name: &'de str,
    place: Place<'de, 'f>,
}

impl<'de, 'f> EnumAccess<'de> for Variant<'de, 'f> {
    type Error = Error;
    type Variant = Place<'de, 'f>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Error> {
        let name: StringDeserializer<Error> = self.name.to_owned().into_deserializer();
        Ok((seed.deserialize(name)?, self.place))
    }
}

impl<'de> VariantAccess<'de> for Place<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Rule {
        name: Option<String>,
        when: When,
        #[serde(default)]
        limits: BTreeMap<u8, Vec<Level>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum When {
        Always,
        Tool { named: String },
        Any(Vec<When>),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Level(u8);

    fn fault(input: &str) -> String {
        read_as::<Rule>(input.as_bytes(), Limits::default())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn reads_types() {
        let rule: Rule = read_as(
            br#"{"name":null,"when":{"any":["always",{"tool":{"named":"rm"}}]},"limits":{"7":[1]}}"#,
            Limits::default(),
        )
        .unwrap();
        let tool = When::Tool { named: "rm".into() };
        assert_eq!(rule.when, When::Any(vec![When::Always, tool]));
        assert_eq!(rule.limits, BTreeMap::from([(7, vec![Level(1)])]));
    }

    #[test]
    fn a_type_error_names_its_place() {
        let cases = [
            (
                r#"{"when":{"any":["always",{"tool":{"named":3}}]}}"#,
                "invalid type: integer `3`, expected a string (in `/when/any/1/tool/named`)",
            ),
            (
                r#"{"when":{"tool":{"named":"x","nam~e":1}}}"#,
                "unknown field `nam~e`, expected `named` (in `/when/tool`)",
            ),
            (
                r#"{"when":"sometimes"}"#,
                "unknown variant `sometimes`, expected one of `always`, `tool`, `any` (in `/when`)",
            ),
            (r#"{"name":"x"}"#, "missing field `when`"),
            (
                r#"{"when":"always","name":[]}"#,
                "invalid type: sequence, expected a string (in `/name`)",
            ),
            (r#"7"#, "invalid type: integer `7`, expected struct Rule"),
            (
                r#"{"when":}"#,
                "found `}` where a value was expected at line 1 column 9 (in `/when`)",
            ),
        ];
        for (input, message) in cases {
            assert_eq!(fault(input), message, "{input}");
        }
    }

    #[test]
    fn a_type_error_draws_nothing() {
        let message = fault("{\"when\":\"always\",\"\\u001b[2J\":1}");
        assert!(message.contains(r"`\u{1b}[2J`"), "{message}");
    }
}
