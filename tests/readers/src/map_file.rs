//! Files of entries, and keys and values by their types.

use std::collections::BTreeMap;

use millrace_control::Exposed;
use millrace_control::{contents, literal, value};
use millrace_dataplane::module::{Entry, ObjectInfo};
use millrace_object::state::{StateKind, hash, hash_of_maps, lpm_trie, prog_array};
use millrace_object::types::{EntryTypes, Field, Type};

/// A kind whose values are maps: they are written by name or with their entries, and shown as numbers.
const HOLDER: &StateKind = &hash_of_maps::KIND;

/// A function of three objects, whose entries have types, a type of the wrong size, and none; and of a map
/// of maps, with the object through which those are reached and a map that can be put into it.
pub fn exposed() -> Exposed {
    let object = |name: &str, kind: &'static StateKind, key_bytes, value_bytes| {
        let info = ObjectInfo {
            name: name.into(),
            kind,
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
        lists: vec![true; 6],
        objects: vec![
            object("flows", &hash::KIND, 24, 8),
            object("routes", &lpm_trie::KIND, 8, 24),
            object("next", &prog_array::KIND, 4, 4),
            object("inner", &hash::KIND, 4, 8),
            object("outer.maps", &hash::KIND, 8, 8),
            object("outer", HOLDER, 4, 4),
        ],
        types: BTreeMap::from([
            ("flows".into(), types(Some(flow.clone()), Some(eight))),
            ("routes".into(), types(Some(Type::Ipv6), Some(flow))),
        ]),
        programs: vec!["first".into(), "second".into()],
        params: Vec::new(),
        shares: Vec::new(),
        keeping: Vec::new(),
        details: Vec::new(),
        classes: Vec::new(),
        linked: false,
        owning: None,
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
    for written in contents::parse(text).unwrap_or_default() {
        assert!(!written.place.is_empty());
        for index in 0..exposed.objects.len() {
            let entries = exposed.entries(index, written.key.as_ref(), &written.value);
            for entry in entries.unwrap_or_default() {
                same(&exposed, entry.object, &entry.key, &entry.value);
            }
        }
        for size in [0, 1, 2, 4, 6, 8, 16, 512] {
            for side in written.key.iter().chain([&written.value]) {
                if let Ok(bytes) = value::read(side, size, None) {
                    assert_eq!(bytes.len(), size);
                }
            }
        }
    }
}

fn same(exposed: &Exposed, object: usize, key: &[u8], value: &[u8]) {
    let (info, _) = &exposed.objects[object];
    assert_eq!((key.len(), value.len()), (info.key_bytes, info.value_bytes));
    if info.kind == HOLDER {
        return;
    }
    let want = Entry::new(object, key.to_vec(), value.to_vec());
    let shown = (
        exposed.show_key(object, key),
        exposed.show_value(object, value),
    );
    let again = exposed.entries(object, Some(&shown.0), &shown.1);
    assert_eq!(again.as_deref(), Ok([want.clone()].as_slice()), "{shown:?}");
    let (words, value_words) = exposed.words(object, key, value);
    let texts = (words.as_str().into(), value_words.as_str().into());
    let again = exposed.entries(object, Some(&texts.0), &texts.1);
    assert_eq!(again.as_deref(), Ok([want].as_slice()), "{texts:?}");
    assert!(!words.contains(',') && !words.contains('\n'));
    // The forms that every reader of such files knows.
    let _ = literal::bytes(&words, key.len());
}
