//! Keys and values as JSON, and the bytes that they are (docs/maps.md): read with or without knowing
//! the type, printed by the type where it is known. What is printed, read again, is the same bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use millrace_object::types::Type;
use serde_json::{Map, Number, Value};

use crate::literal;

/// The bytes of a key or value of `size` bytes.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read(value: &Value, size: usize, ty: Option<&Type>) -> Result<Vec<u8>, String> {
    match (value, ty) {
        (Value::Object(fields), Some(ty @ Type::Struct { .. })) => structure(fields, ty),
        (Value::Object(_), _) => {
            Err("an object of fields, where no structure is declared; write its bytes".into())
        }
        (Value::String(words), _) => literal::bytes(words, size),
        (Value::Number(number), _) => integer(number, size),
        (Value::Array(bytes), _) => sized(array(bytes)?, size),
        _ => Err("neither a text, a number, an array of bytes nor an object of fields".into()),
    }
}

fn sized(bytes: Vec<u8>, size: usize) -> Result<Vec<u8>, String> {
    match bytes.len() {
        n if n == size => Ok(bytes),
        n => Err(format!("{n} bytes, {size} are wanted")),
    }
}

/// A number in the machine's byte order; one below zero as two's complement.
fn integer(number: &Number, size: usize) -> Result<Vec<u8>, String> {
    let Some(negative) = number.as_i64().filter(|n| *n < 0) else {
        return literal::bytes(&number.to_string(), size);
    };
    let bits = match size {
        1 | 2 | 4 | 8 => size as u32 * 8,
        _ => {
            return Err(format!(
                "{number} could be of any width, and {size} bytes are wanted"
            ));
        }
    };
    if negative < i64::MIN >> (64 - bits) {
        return Err(format!("{number} does not fit {size} bytes"));
    }
    let mut bytes = negative.to_le_bytes().to_vec();
    bytes.truncate(size);
    Ok(bytes)
}

/// As bpftool prints them: "0x0a" each. Plain numbers serve too.
fn array(bytes: &[Value]) -> Result<Vec<u8>, String> {
    let byte = |byte: &Value| {
        let byte = match byte {
            Value::String(hex) => hex
                .strip_prefix("0x")
                // `from_str_radix` alone would take a sign.
                .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
                .and_then(|h| u8::from_str_radix(h, 16).ok()),
            other => other.as_u64().and_then(|n| u8::try_from(n).ok()),
        };
        byte.ok_or_else(|| "an array has bytes, 0 to 255 or \"0x00\" to \"0xff\"".to_owned())
    };
    bytes.iter().map(byte).collect()
}

/// A structure by its fields; those left out, and the padding, are zero.
fn structure(given: &Map<String, Value>, ty: &Type) -> Result<Vec<u8>, String> {
    let Type::Struct { bytes, fields } = ty else {
        return Err("no structure".into());
    };
    let mut all = vec![0; *bytes];
    for (name, value) in given {
        let field = fields.iter().find(|f| f.name == *name).ok_or_else(|| {
            let names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
            format!("there is no field `{name}`; there are {}", names.join(", "))
        })?;
        let content = member(value, &field.ty).map_err(|e| format!("{name}: {e}"))?;
        let place = all.get_mut(field.offset..field.offset.saturating_add(content.len()));
        match place {
            Some(place) => place.copy_from_slice(&content),
            None => return Err(format!("{name}: does not lie in its structure")),
        }
    }
    Ok(all)
}

/// A field, whose type is known: a number is in its byte order, an array is of its elements.
fn member(value: &Value, ty: &Type) -> Result<Vec<u8>, String> {
    match (value, ty) {
        (Value::Number(n), Type::Network { .. } | Type::Ipv4) => {
            let mut bytes = integer(n, ty.bytes())?;
            bytes.reverse();
            Ok(bytes)
        }
        (Value::Array(values), Type::Array { element, count }) => {
            if values.len() != *count {
                return Err(format!("{} elements, {count} are wanted", values.len()));
            }
            let parts = values.iter().map(|v| member(v, element));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        }
        _ => read(value, ty.bytes(), Some(ty)),
    }
}

/// A key or value for people and programs: what [`read`] turns into the same bytes.
#[must_use]
pub fn show(bytes: &[u8], ty: Option<&Type>) -> Value {
    let Some(ty) = ty.filter(|t| t.bytes() == bytes.len()) else {
        return untyped(bytes);
    };
    let shown = match ty {
        Type::Network { .. } | Type::Array { .. } => Value::String(words(bytes, Some(ty))),
        _ => field(bytes, ty),
    };
    // Padding that is not zero and members that lie over each other are not in the fields.
    match read(&shown, bytes.len(), Some(ty)) {
        Ok(again) if again == bytes => shown,
        _ => Value::String(hex(bytes)),
    }
}

fn untyped(bytes: &[u8]) -> Value {
    match bytes.len() {
        1 | 2 | 4 | 8 => Value::from(little(bytes)),
        0 => Value::String(String::new()),
        _ => Value::String(hex(bytes)),
    }
}

fn field(bytes: &[u8], ty: &Type) -> Value {
    match ty {
        Type::Int { signed: true, .. } => Value::from(negative(bytes)),
        Type::Int { .. } => Value::from(little(bytes)),
        Type::Network { .. } => Value::from(big(bytes)),
        Type::Array { element, .. } if element.bytes() > 0 => {
            let parts = bytes.chunks(element.bytes());
            parts.map(|p| field(p, element)).collect()
        }
        Type::Struct { fields, .. } => {
            let named = fields.iter().map(|f| {
                let end = f.offset.saturating_add(f.ty.bytes());
                let part = bytes.get(f.offset..end).unwrap_or(&[]);
                (f.name.clone(), field(part, &f.ty))
            });
            Value::Object(named.collect())
        }
        _ => Value::String(words(bytes, Some(ty))),
    }
}

/// The same as one text, which [`literal::bytes`] turns into the same bytes.
#[must_use]
pub fn words(bytes: &[u8], ty: Option<&Type>) -> String {
    match ty.filter(|t| t.bytes() == bytes.len()) {
        None | Some(Type::Int { .. }) => match untyped(bytes) {
            Value::String(text) => text,
            number => number.to_string(),
        },
        Some(ty) => {
            let mut parts = Vec::new();
            part(bytes, ty, &mut parts);
            parts.join(" ")
        }
    }
}

fn part(bytes: &[u8], ty: &Type, parts: &mut Vec<String>) {
    match ty {
        Type::Int { bytes: size, .. } => parts.push(format!("u{}:{}", size * 8, little(bytes))),
        Type::Network { bytes: size } => parts.push(format!("be{}:{}", size * 8, big(bytes))),
        Type::Ipv4 | Type::Ipv6 | Type::Mac => parts.push(address(bytes)),
        Type::Array { element, .. } if element.bytes() > 1 => {
            for one in bytes.chunks(element.bytes()) {
                part(one, element, parts);
            }
        }
        Type::Struct { fields, .. } => {
            let mut at = 0;
            for field in fields {
                // A member that lies over the one before it is among that one's bytes.
                if field.offset < at {
                    continue;
                }
                raw(bytes.get(at..field.offset).unwrap_or(&[]), parts);
                at = field.offset.saturating_add(field.ty.bytes());
                part(bytes.get(field.offset..at).unwrap_or(&[]), &field.ty, parts);
            }
            raw(bytes.get(at..).unwrap_or(&[]), parts);
        }
        Type::Array { .. } | Type::Bytes(_) => raw(bytes, parts),
    }
}

fn raw(bytes: &[u8], parts: &mut Vec<String>) {
    if bytes.is_empty() {
        return;
    }
    parts.push(match bytes.iter().all(|b| *b == 0) {
        true => format!("zeros:{}", bytes.len()),
        false => hex(bytes),
    });
}

fn address(bytes: &[u8]) -> String {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(v4).to_string();
    }
    if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
        return Ipv6Addr::from(v6).to_string();
    }
    let pairs: Vec<_> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    pairs.join(":")
}

fn hex(bytes: &[u8]) -> String {
    format!("hex:{}", millrace_dataplane::runner::hex(bytes))
}

/// Up to eight bytes, least significant first.
fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn big(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn negative(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    (little(bytes) << unused).cast_signed() >> unused
}

/// The key of a trie of prefixes, `192.0.2.0/24`: the length in bits, then the address.
#[must_use]
pub fn prefix(text: &str) -> Option<Vec<u8>> {
    let (address, bits) = text.split_once('/')?;
    let address = match address.trim().parse().ok()? {
        IpAddr::V4(a) => a.octets().to_vec(),
        IpAddr::V6(a) => a.octets().to_vec(),
    };
    let plain = bits.bytes().all(|b| b.is_ascii_digit());
    let bits = bits.parse::<u32>().ok().filter(|_| plain)?;
    (bits as usize <= address.len() * 8).then(|| [&bits.to_le_bytes()[..], &address].concat())
}

/// The other way round, for a key that can be an address with its length.
#[must_use]
pub fn show_prefix(key: &[u8]) -> Option<String> {
    let (bits, at) = key.split_first_chunk::<4>()?;
    let bits = u32::from_le_bytes(*bits);
    let known = matches!(at.len(), 4 | 16) && bits as usize <= at.len() * 8;
    known.then(|| format!("{}/{bits}", address(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_object::types::Field;
    use proptest::prelude::*;
    use serde_json::json;

    fn flow() -> Type {
        let field = |name: &str, offset, ty| Field {
            name: name.into(),
            offset,
            ty,
        };
        let int = |bytes, signed| Type::Int { bytes, signed };
        Type::Struct {
            bytes: 24,
            fields: vec![
                field("from", 0, Type::Ipv4),
                field("port", 4, Type::Network { bytes: 2 }),
                field("mac", 6, Type::Mac),
                field("balance", 12, int(4, true)),
                field(
                    "pair",
                    16,
                    Type::Array {
                        element: Box::new(int(2, false)),
                        count: 2,
                    },
                ),
                field("flag", 20, int(1, false)),
            ],
        }
    }

    #[test]
    fn a_byte_of_an_array_has_no_sign() {
        assert_eq!(
            read(&json!(["0x0a", 7, "0xFf"]), 3, None).unwrap(),
            [10, 7, 255]
        );
        for wrong in ["0x+1", "0x-1", "0x", "0x1_0", "0x100", "+1"] {
            assert!(read(&json!([wrong]), 1, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_structure_is_written_by_its_fields() {
        let ty = flow();
        let text = json!({
            "from": "10.0.0.1", "port": 80, "mac": "02:00:00:00:00:0a",
            "balance": -2, "pair": [1, 2], "flag": 7,
        });
        let bytes = read(&text, 24, Some(&ty)).unwrap();
        let want = [
            10, 0, 0, 1, 0, 80, 2, 0, 0, 0, 0, 10, 0xfe, 0xff, 0xff, 0xff, 1, 0, 2, 0, 7, 0, 0, 0,
        ];
        assert_eq!(bytes, want);
        assert_eq!(show(&bytes, Some(&ty)), text);
        let line = "10.0.0.1 be16:80 02:00:00:00:00:0a u32:4294967294 u16:1 u16:2 u8:7 zeros:3";
        assert_eq!(words(&bytes, Some(&ty)), line);
        assert_eq!(read(&json!(line), 24, Some(&ty)).unwrap(), want);
        // What is left out is zero; what is unknown is refused.
        let some = read(&json!({"port": "be16:1"}), 24, Some(&ty)).unwrap();
        assert_eq!(some.iter().map(|b| u32::from(*b)).sum::<u32>(), 1);
        let wrong = read(&json!({"prot": 1}), 24, Some(&ty)).unwrap_err();
        assert!(
            wrong.contains("no field `prot`; there are from, port"),
            "{wrong}"
        );
        let wide = read(&json!({"port": 70000}), 24, Some(&ty)).unwrap_err();
        assert!(wide.starts_with("port: 70000 does not fit"), "{wide}");
        assert!(read(&json!({"balance": -3_000_000_000_i64}), 24, Some(&ty)).is_err());
        // Padding that is not zero cannot be said by fields.
        let mut odd = bytes;
        odd[23] = 1;
        assert!(
            show(&odd, Some(&ty))
                .as_str()
                .unwrap()
                .starts_with("hex:0a000001")
        );
    }

    #[test]
    fn prefixes_are_written_with_their_length() {
        assert_eq!(prefix("192.0.2.0/24").unwrap(), [24, 0, 0, 0, 192, 0, 2, 0]);
        assert_eq!(
            show_prefix(&prefix("2001:db8::/32").unwrap()).unwrap(),
            "2001:db8::/32"
        );
        for wrong in [
            "192.0.2.0/33",
            "192.0.2.0",
            "x/1",
            "192.0.2.0/+1",
            "192.0.2.0/",
        ] {
            assert_eq!(prefix(wrong), None, "{wrong}");
        }
        assert_eq!(show_prefix(&[99, 0, 0, 0, 1, 2, 3, 4]), None);
    }

    fn types() -> impl Strategy<Value = Type> {
        let leaf = prop_oneof![
            (0..4_u32, any::<bool>()).prop_map(|(n, signed)| Type::Int {
                bytes: 1 << n,
                signed
            }),
            Just(Type::Network { bytes: 2 }),
            Just(Type::Network { bytes: 8 }),
            Just(Type::Ipv4),
            Just(Type::Ipv6),
            Just(Type::Mac),
            (0..9_usize).prop_map(Type::Bytes),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                (inner.clone(), 0..4_usize).prop_map(|(element, count)| Type::Array {
                    element: Box::new(element),
                    count
                }),
                prop::collection::vec((inner, 0..3_usize), 0..4).prop_map(|parts| {
                    let (mut bytes, mut fields) = (0, Vec::new());
                    for (index, (ty, gap)) in parts.into_iter().enumerate() {
                        let offset = bytes + gap;
                        bytes = offset + ty.bytes();
                        let name = format!("f{index}");
                        fields.push(Field { name, offset, ty });
                    }
                    Type::Struct { bytes, fields }
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_the_same_bytes(ty in types(), seed in any::<[u8; 32]>()) {
            let bytes: Vec<u8> = seed.iter().cycle().take(ty.bytes()).copied().collect();
            for ty in [Some(&ty), None] {
                let shown = show(&bytes, ty);
                prop_assert_eq!(read(&shown, bytes.len(), ty), Ok(bytes.clone()), "{}", shown);
                let text = words(&bytes, ty);
                prop_assert_eq!(literal::bytes(&text, bytes.len()), Ok(bytes.clone()), "{}", text);
            }
        }
    }
}
