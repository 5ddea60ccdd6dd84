//! Changes of a running chain: making elements, naming ports, keeping state.

use millrace_dataplane::classes::successor::Successor;
use millrace_dataplane::module::Keeping;
use millrace_dataplane::share::Share;
use millrace_dataplane::worker::Link;
use millrace_place::Held;
use millrace_topology::{End, Topology, TopologyError};
use serde_json::{Value, json};

use crate::elements::Element;
use crate::exposed::Exposed;
use crate::protocol::ChainRequest;
use crate::trouble::Trouble;

/// The longest name of an element, characters.
const MOST_NAME: usize = 64;

/// Makes elements of a running chain. What it does, it does beside the chain: it may take long.
pub trait Maker: Send + Sync {
    /// What a request asks for: compiled, checked and loaded, or started until it asks for packets.
    ///
    /// # Errors
    /// It cannot be made; the chain is as it was.
    fn make(&self, wanted: &ChainRequest) -> Result<Made, Trouble>;

    /// Why nothing can be beside the element of this number, which was there from the start, whose state is divided over the workers; none: it
    /// can.
    fn alone(&self, element: u64) -> Option<String>;
}

/// An element that has been made.
pub struct Made {
    /// what is put into the chain
    pub link: Link,
    /// names of its ports; empty where it names none
    pub ports: Vec<String>,
    /// a function's state
    pub exposed: Option<std::sync::Arc<Exposed>>,
    /// why nothing can be beside it whose state is divided over the workers, if so
    pub alone: Option<String>,
    /// what goes with buckets of it, where its state does
    pub successor: Option<std::sync::Arc<Successor>>,
}

/// A name of an element that nobody else has: this one, or with a number behind it.
///
/// # Errors
/// It was `asked` for and is taken, or it is no name.
pub fn name(list: &[Element], wanted: &str, asked: bool) -> Result<String, Trouble> {
    let fit = |c: char| c.is_ascii_alphanumeric() || "_-.#".contains(c);
    if asked && (wanted.is_empty() || wanted.len() > MOST_NAME || !wanted.chars().all(fit)) {
        return Err(Trouble::new("malformed", format!("`{wanted}` is no name"))
            .help(format!("use 1 to {MOST_NAME} letters, digits, _, - and .")));
    }
    let taken = |name: &str| list.iter().any(|e| e.name == name);
    if !taken(wanted) {
        return Ok(wanted.to_owned());
    }
    if asked {
        return Err(
            Trouble::new("refused", format!("there is an element `{wanted}` already"))
                .help("choose another --name, or replace it"),
        );
    }
    let numbered = (2..).map(|n: u64| format!("{wanted}-{n}"));
    Ok(numbered
        .into_iter()
        .find(|name| !taken(name))
        .unwrap_or_default())
}

/// The place of an element in the list.
///
/// # Errors
/// There is none.
pub fn place(list: &[Element], name: &str) -> Result<usize, Trouble> {
    let found = list.iter().position(|e| e.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = list.iter().map(|e| e.name.as_str()).collect();
        Trouble::new("no-such-element", format!("there is no element `{name}`"))
            .help(format!("the chain has {}", names.join(", ")))
    })
}

/// The port that `ELEMENT.PORT` names, by its name or number; of an element alone the port `usual`, or its last.
///
/// # Errors
/// There is no such element or port.
pub fn end(list: &[Element], topology: &Topology, text: &str, usual: u32) -> Result<End, Trouble> {
    let whole = list.iter().position(|e| e.name == text);
    let (element, port) = match (whole, text.rsplit_once('.')) {
        (Some(element), _) => (element, None),
        (None, Some((name, port))) => (place(list, name)?, Some(port)),
        (None, None) => (place(list, text)?, None),
    };
    let count = topology.ports(element).len() as u32;
    let names = list.get(element).map_or(&[][..], |e| e.ports.as_slice());
    let port = match port {
        None => Some(usual.min(count.saturating_sub(1))),
        Some(port) => {
            let by_name = names.iter().position(|n| n.eq_ignore_ascii_case(port));
            by_name.map(|p| p as u32).or_else(|| port.parse().ok())
        }
    };
    let port = port.filter(|p| *p < count).ok_or_else(|| {
        Trouble::new("no-such-port", format!("`{text}`: there is no such port"))
            .help(format!("its ports are {}", names.join(", ")))
    })?;
    Ok(End::Element { element, port })
}

/// Error of a topology, in the elements' names.
#[must_use]
pub fn wrong(error: &TopologyError, list: &[Element]) -> Trouble {
    let name = |element: &usize| {
        list.get(*element)
            .map_or("the new element", |e| e.name.as_str())
    };
    let (what, help) = match error {
        TopologyError::NotTwo(element) => (
            format!("{} has not two ports", name(element)),
            "only elements of two ports can be taken out, put between others or moved",
        ),
        TopologyError::Count(0) => (
            "it is the only element of the chain".to_owned(),
            "replace it, or end the run with `millrace ctl drain`",
        ),
        TopologyError::Order => (
            "the order does not name each element once".to_owned(),
            "name all elements that `millrace ctl chain show` lists",
        ),
        TopologyError::NotLine => (
            "the chain is not a line".to_owned(),
            "move one element at a time, with --before or --after",
        ),
        TopologyError::Cycle(element) => (
            format!("{} cannot be put next to itself", name(element)),
            "name another element",
        ),
        TopologyError::Unknown(End::Element { element, .. }) => (
            format!("the new element has other ports than {}", name(element)),
            "attach it, and detach the other one",
        ),
        other => (other.to_string(), "see `millrace ctl chain show`"),
    };
    Trouble::new("refused", what).help(help)
}

/// State that a function keeps of the one that it replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// objects that are kept: their index before and now
    pub pairs: Vec<(usize, usize)>,
    /// those that cannot be, and why not
    pub lost: Vec<(String, String)>,
}

impl Kept {
    /// All or nothing: what was made together, as a flow and its lease, is of no use apart.
    ///
    /// # Errors
    /// Something cannot be kept.
    pub fn whole(self) -> Result<Vec<(usize, usize)>, Trouble> {
        if self.lost.is_empty() {
            return Ok(self.pairs);
        }
        let lost = self.lost.iter().map(|(name, why)| format!("{name}: {why}"));
        let lost = lost.collect::<Vec<_>>().join("; ");
        Err(
            Trouble::new("refused", format!("state cannot be kept: {lost}"))
                .help("nothing was changed; to begin with no state at all, add --anew"),
        )
    }
}

/// Objects of a function that its replacement keeps.
#[must_use]
pub fn kept(old: &Exposed, new: &Exposed) -> Kept {
    let mut kept = Kept::default();
    for (index, (info, _)) in old.objects.iter().enumerate() {
        let never = match old.keeping(index) {
            Keeping::Nothing => continue,
            Keeping::All => None,
            Keeping::Never(why) => Some(why.to_owned()),
        };
        let found = new.objects.iter().position(|(o, _)| o.name == info.name);
        let why = never.or_else(|| match found {
            None => Some("the new one has no such object".to_owned()),
            Some(at) => differs(old, index, new, at),
        });
        match (why, found) {
            (None, Some(at)) => kept.pairs.push((index, at)),
            (why, _) => kept.lost.push((info.name.clone(), why.unwrap_or_default())),
        }
    }
    if kept.pairs.is_empty() {
        return kept;
    }
    // What is kept may hold numbers that such an object would lease to others.
    let old_has = |name: &str| old.objects.iter().any(|(o, _)| o.name == name);
    let leases = new.objects.iter().filter(|(o, _)| o.kind.leases());
    for (info, _) in leases.filter(|(o, _)| !old_has(&o.name)) {
        let why = "the old one has no such object, and numbers in what it has are not leased there";
        kept.lost.push((info.name.clone(), why.to_owned()));
    }
    kept
}

/// Why what each worker has of one object is nothing that it could have of another one; none where it is.
fn parts(old: &Share, new: &Share) -> Option<&'static str> {
    let whole =
        |share: &Share| matches!(share.held, Held::Copied | Held::Locked | Held::Transacted);
    match (whole(old), whole(new)) {
        (true, true) => None,
        (false, false) if old.held == new.held => None,
        (false, false) => Some("workers have other parts of it now than before"),
        (false, true) => Some("each worker has a part of it before, and all have the whole now"),
        (true, false) => Some("all workers have the whole of it before, and each has a part now"),
    }
}

/// Why one object cannot take up what another one was; none where it can.
fn differs(old: &Exposed, index: usize, new: &Exposed, at: usize) -> Option<String> {
    let (Ok(info), Ok(other)) = (old.info(index), new.info(at)) else {
        return Some("there is no such object".to_owned());
    };
    if other.kind != info.kind {
        return Some(format!(
            "{} before, {} now",
            info.kind.name, other.kind.name
        ));
    }
    if old.detail(index) != new.detail(at) {
        return Some(if info.kind.is_global() {
            "variables may lie elsewhere, as the code is another".to_owned()
        } else {
            format!("{} before, {} now", old.detail(index), new.detail(at))
        });
    }
    if let Some(why) = parts(old.share(index), new.share(at)) {
        return Some(why.to_owned());
    }
    if (other.key_bytes, other.value_bytes) != (info.key_bytes, info.value_bytes) {
        return Some(format!(
            "entries of {} + {} bytes before, {} + {} now",
            info.key_bytes, info.value_bytes, other.key_bytes, other.value_bytes
        ));
    }
    if other.capacity < info.capacity {
        return Some(format!(
            "{} entries fit, {} did before",
            other.capacity, info.capacity
        ));
    }
    (old.types.get(&info.name) != new.types.get(&info.name))
        .then(|| "its keys or values are declared differently".to_owned())
}

/// The chain as it is, as JSON.
#[must_use]
pub fn shown(list: &[Element], topology: &Topology) -> Value {
    let text = |end: &End| match end {
        End::Out(port) => json!({ "out": port }),
        End::Element { element, port } => {
            let of = list.get(*element);
            json!({
                "element": of.map(|e| e.name.as_str()),
                "port": of.and_then(|e| e.ports.get(*port as usize)),
            })
        }
    };
    let elements = list.iter().enumerate().map(|(at, element)| {
        let leads = topology.ports(at).iter().zip(&element.ports);
        json!({
            "name": element.name,
            "id": element.id,
            "guests": crate::guests::shown(element),
            "kind": if element.exposed.is_some() { "function" } else { "guest" },
            "ports": leads.map(|(end, name)| json!({ "name": name, "leads": text(end) })).collect::<Vec<_>>(),
        })
    });
    json!({
        "elements": elements.collect::<Vec<_>>(),
        "ports": topology.entries().iter().map(text).collect::<Vec<_>>(),
        "line": topology.is_line(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str, ports: &[&str]) -> Element {
        Element {
            id: 0,
            name: name.into(),
            ports: ports.iter().map(|p| (*p).to_owned()).collect(),
            exposed: None,
            guests: Vec::new(),
            recipe: None,
            alone: None,
            successor: None,
        }
    }

    #[test]
    fn ports_are_named_by_element_and_name_or_number() {
        let list = [element("fw", &["LAN", "WAN"]), element("a.b", &["0", "1"])];
        let line = Topology::line(2);
        let at = |element, port| Ok(End::Element { element, port });
        let end = |text| end(&list, &line, text, 1).map_err(|t| t.code);
        assert_eq!(end("fw"), at(0, 1));
        assert_eq!(end("fw.lan"), at(0, 0));
        assert_eq!(end("fw.1"), at(0, 1));
        assert_eq!(end("a.b"), at(1, 1));
        assert_eq!(end("a.b.0"), at(1, 0));
        for wrong in ["fw.2", "fw.DMZ", "a.0", "nat", "", "."] {
            assert!(end(wrong).is_err(), "{wrong}");
        }
        assert_eq!(name(&list, "fw", false).unwrap(), "fw-2");
        assert!(name(&list, "fw", true).is_err() && name(&list, "x y", true).is_err());
    }

    #[test]
    fn objects_of_the_same_layout_are_kept() {
        use millrace_dataplane::module::ObjectInfo;
        use millrace_object::state;
        let object = |name: &str, kind: &str, value_bytes, capacity| {
            let info = ObjectInfo {
                name: name.into(),
                kind: state::by_name(kind).unwrap(),
                key_bytes: 4,
                value_bytes,
                capacity,
                bytes: 0,
                records: false,
            };
            (info, true)
        };
        let exposed = |objects: Vec<(ObjectInfo, bool)>| Exposed {
            lists: vec![true; objects.len()],
            keeping: vec![Keeping::All; objects.len()],
            objects,
            ..Exposed::nothing("f")
        };
        let old = exposed(vec![
            object("same", "hash", 8, 10),
            object("larger", "hash", 8, 10),
            object("smaller", "hash", 8, 10),
            object("wider", "hash", 8, 10),
            object("other", "hash", 8, 10),
            object("gone", "hash", 8, 10),
        ]);
        let new = exposed(vec![
            object("other", "array", 8, 10),
            object("same", "hash", 8, 10),
            object("larger", "hash", 8, 11),
            object("smaller", "hash", 8, 9),
            object("wider", "hash", 16, 10),
        ]);
        let Kept { pairs, lost } = kept(&old, &new);
        assert_eq!(pairs, [(0, 1), (1, 2)]);
        let names: Vec<_> = lost.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["smaller", "wider", "other", "gone"]);
        // All or nothing, with every reason.
        let refused = Kept { pairs, lost }.whole().unwrap_err();
        assert!(
            refused
                .what
                .contains("gone: the new one has no such object"),
            "{}",
            refused.what
        );
        // A new object is nothing to lose, but for one that leases numbers which what is kept may hold.
        let old = exposed(vec![object("flows", "hash", 8, 10)]);
        let more = |kind| {
            exposed(vec![
                object("flows", "hash", 8, 10),
                object("new", kind, 8, 10),
            ])
        };
        assert_eq!(kept(&old, &more("vector")).whole().unwrap(), [(0, 0)]);
        assert!(kept(&old, &more("allocator")).whole().is_err());
        // Variables are kept by the same code only, and what cannot be kept is never.
        let with = |detail: &str, keeping| Exposed {
            details: vec![detail.into()],
            keeping: vec![keeping],
            ..exposed(vec![object(".bss", "global", 8, 1)])
        };
        let (one, other) = (with("code 1", Keeping::All), with("code 2", Keeping::All));
        assert_eq!(kept(&one, &one).pairs, [(0, 0)]);
        assert_eq!(kept(&one, &other).lost.len(), 1);
        // What each worker has a part of stays with it; all parts are not made one, nor one divided.
        let held = |held: &Held| Exposed {
            shares: vec![Share::new(held.clone(), 10)],
            ..exposed(vec![object("flows", "hash", 8, 10)])
        };
        for (before, now, stays) in [
            (Held::Divided, Held::Divided, true),
            (Held::Locked, Held::Copied, true),
            (Held::Divided, Held::Locked, false),
            (Held::Copied, Held::Divided, false),
        ] {
            let kept = kept(&held(&before), &held(&now));
            assert_eq!(kept.lost.is_empty(), stays, "{before:?} {now:?}");
        }
        let never = with("", Keeping::Never("its values are maps"));
        assert_eq!(kept(&never, &never).lost.len(), 1);
        let nothing = with("", Keeping::Nothing);
        assert_eq!(kept(&nothing, &other), Kept::default());
    }
}
