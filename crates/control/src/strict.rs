//! JSON from outside, in which no object has a field twice. `serde_json::Value` keeps the last one of them, so that an
//! entry with two ports would silently get the second.

use std::fmt::{Formatter, Result as Written};

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value without such objects.
struct Strict(Value);

/// Reads a value.
///
/// # Errors
/// It is no JSON, or has an object with a field twice.
pub fn from_str(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0)
}

/// The value of a field that may be absent.
pub(crate) fn optional<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    let value = Option::<Strict>::deserialize(d)?;
    Ok(value.map(|strict| strict.0))
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Strict;

    fn expecting(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(value)) = seq.next_element()? {
            all.push(value);
        }
        Ok(Strict(Value::Array(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut all = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let Strict(value) = map.next_value()?;
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("the field `{name}` twice")));
            }
            all.insert(name, value);
        }
        Ok(Strict(Value::Object(all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;

    #[test]
    fn values_are_read_as_they_are() {
        let text = r#"{"a":[1,-2,0.5,true,null,"x\n"],"b":{"a":18446744073709551615},"c":{}}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(from_str(text).unwrap(), plain);
    }

    #[test]
    fn a_field_that_stands_twice_is_refused() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":[{"a":1,"b":2,"a":3}]}]"#] {
            let error = from_str(text).unwrap_err().to_string();
            assert!(error.contains("the field `a` twice"), "{error}");
        }
        let ask = |value: &str| {
            let line = format!(
                r#"{{"v":1,"do":"edit","edits":[{{"object":"o","op":"set","key":1,"value":{value}}}]}}"#
            );
            protocol::parse(line.as_bytes())
        };
        assert!(ask(r#"{"a":1,"b":2}"#).is_ok());
        let error = ask(r#"{"a":1,"a":2}"#).unwrap_err().what;
        assert!(error.contains("the field `a` twice"), "{error}");
    }
}
