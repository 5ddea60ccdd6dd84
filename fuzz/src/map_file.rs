//! Files of entries, and keys and values by their types.

use std::collections::BTreeMap;

use millrace_control::Exposed;
use millrace_control::{contents, literal, value};
use millrace_dataplane::module::ObjectInfo;
use millrace_object::types::{EntryTypes, Field, Type};

/// A function of three objects, whose entries have types, a type of the wrong size, and none.
pub fn exposed() -> Exposed {
    let object = |name: &str, kind: &str, key_bytes, value_bytes| {
        let info = ObjectInfo {
            name: name.into(),
            kind: kind.into(),
            key_bytes,
            value_bytes,
            capacity: 64,
            bytes: 4096,
            records: false,
        };
        (info, true)
    };
    let field = |name: &str, offset, ty| Field {
        name: name.into(),
        offset,
        ty,
    };
    let flow = Type::Struct {
        bytes: 24,
        fields: vec![
            field("source", 0, Type::Ipv4),
            field("port", 4, Type::Network { bytes: 2 }),
            field("station", 6, Type::Mac),
            field(
                "cost",
                12,
                Type::Int {
                    bytes: 4,
                    signed: true,
                },
            ),
            field(
                "words",
                16,
                Type::Array {
                    element: Box::new(Type::Int {
                        bytes: 2,
                        signed: false,
                    }),
                    count: 3,
                },
            ),
        ],
    };
    let types = |key, value| EntryTypes {
        key,
        value,
        pinned: true,
    };
    let eight = Type::Int {
        bytes: 8,
        signed: true,
    };
    Exposed {
        name: "fuzz".into(),
        objects: vec![
            object("flows", "hash", 24, 8),
            object("routes", "lpm_trie", 8, 24),
            object("next", "prog_array", 4, 4),
        ],
        types: BTreeMap::from([
            ("flows".into(), types(Some(flow.clone()), Some(eight))),
            ("routes".into(), types(Some(Type::Ipv6), Some(flow))),
        ]),
        programs: vec!["first".into(), "second".into()],
        params: Vec::new(),
    }
}

/// Reads `data` as a file, and each of its entries for each object. What is printed of an entry must be
/// the same entry again, in both forms.
pub fn run(data: &[u8]) {
    let exposed = exposed();
    // Any bytes of the right length are a key and a value.
    for (index, (info, _)) in exposed.objects.iter().enumerate() {
        let (Some(key), Some(rest)) = (data.get(..info.key_bytes), data.get(info.key_bytes..))
        else {
            continue;
        };
        let Some(value) = rest.get(..info.value_bytes) else {
            continue;
        };
        same(&exposed, index, key, value);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for entry in contents::parse(text).unwrap_or_default() {
        assert!(!entry.place.is_empty());
        for index in 0..exposed.objects.len() {
            if let Ok(entry) = exposed.entry(index, &entry.key, &entry.value) {
                same(&exposed, index, &entry.key, &entry.value);
            }
        }
        for size in [0, 1, 2, 4, 6, 8, 16, 512] {
            if let Ok(bytes) = value::read(&entry.key, size, None) {
                assert_eq!(bytes.len(), size);
            }
        }
    }
}

fn same(exposed: &Exposed, object: usize, key: &[u8], value: &[u8]) {
    let shown = (
        exposed.show_key(object, key),
        exposed.show_value(object, value),
    );
    let again = exposed.entry(object, &shown.0, &shown.1);
    assert!(
        again.is_ok_and(|e| e.key == key && e.value == value),
        "{shown:?}"
    );
    let (words, value_words) = exposed.words(object, key, value);
    let again = exposed.entry(object, &words.as_str().into(), &value_words.as_str().into());
    assert!(
        again.is_ok_and(|e| e.key == key && e.value == value),
        "{words},{value_words}"
    );
    assert!(!words.contains(',') && !words.contains('\n'));
    // The forms that every reader of such files knows.
    let _ = literal::bytes(&words, key.len());
}
