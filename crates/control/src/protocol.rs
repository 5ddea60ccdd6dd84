//! The language of the control socket: one JSON object a line, a request and its answer in turn
//! (docs/control.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trouble::Trouble;

/// The version that this program speaks. A request of another one is refused.
pub const VERSION: u32 = 1;

/// The longest request, bytes with the line's end.
pub const MOST_REQUEST: usize = 1 << 20;

/// Most bytes of edits that wait for the rest of them, over all clients.
pub const MOST_STAGED: usize = 64 << 20;

/// Entries in one answer.
pub const MOST_ENTRIES: usize = 1024;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`]
    pub v: u32,
    /// comes back with the answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// what is asked for
    #[serde(rename = "do")]
    pub verb: String,
    /// the name of an object
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// a key as people write it
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::strict::optional"
    )]
    pub key: Option<Value>,
    /// where to go on listing
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// at most this many entries
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// of one parameter: `NAME=VALUE`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// where a guest is moved to, or its snapshot is written
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// what to change
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
    /// of a chain: what is to be done with it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainRequest>,
    /// of a packet class: what is to be done with it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassRequest>,
    /// of a trace: what is to be done
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRequest>,
    /// of a profile: `begin` or `end`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// of a reload: say what would change, and change nothing
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check: bool,
    /// further edits follow, and all of them are one
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// A request to change a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainRequest {
    /// `show`, `attach`, `detach`, `replace`, `move` or `reorder`
    pub op: String,
    /// the element that is detached, replaced or moved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// what is attached, or put in the place of another: a function or a guest, as `run` takes it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// what it is to be called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// in front of this element or `ELEMENT.PORT`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// behind this one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// all elements, in the order that they are to have
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// settings of a function, `NAME=VALUE`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// capacities, `OBJECT=N`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<String>,
    /// entries from files, `OBJECT=FILE`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<String>,
    /// where relative paths begin, and a guest works; without it where the run was started
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// of a replacement: nothing of the state is kept
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
}

/// A request about packet classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassRequest {
    /// `show`, `move`, `cores` or `rotate`
    pub op: String,
    /// the class that is moved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<usize>,
    /// the worker that is to have it; of `cores`, how many are to have any
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
}

/// A request about a trace of packets, of which a client has one at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// `begin`, `next` or `end`
    pub op: String,
    /// which packets, in the words of `millrace explain --where`; for `begin`
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// how many, from 1; for `begin`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// its name
    pub object: String,
    /// `set`, `delete` or `clear`
    pub op: String,
    /// as people write it; not for `clear`
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::strict::optional"
    )]
    pub key: Option<Value>,
    /// as people write it; for `set`
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::strict::optional"
    )]
    pub value: Option<Value>,
}

/// An answer: `ok`, or what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`]
    pub v: u32,
    /// the request's
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// the result
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// why there is none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
}

impl Answer {
    /// The answer to a request with this id.
    #[must_use]
    pub fn new(id: Option<u64>, result: Result<Value, Trouble>) -> Self {
        let (ok, error) = match result {
            Ok(ok) => (Some(ok), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            v: VERSION,
            id,
            ok,
            error,
        }
    }
}

/// Reads a request.
///
/// # Errors
/// It is no JSON, has members that nobody knows, or is of another version.
pub fn parse(line: &[u8]) -> Result<Request, Trouble> {
    let request: Request = serde_json::from_slice(line).map_err(|e| {
        Trouble::new("malformed", format!("not a request: {e}"))
            .help("send one JSON object a line, as in {\"v\":1,\"do\":\"hello\"}")
    })?;
    if request.v != VERSION {
        return Err(Trouble::new(
            "version",
            format!("version {} of the protocol, not {VERSION}", request.v),
        )
        .help("use the client of the same release"));
    }
    Ok(request)
}
