//! The running elements, as requests name them: the elements of a chain, with the objects and parameters of its
//! functions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use millrace_dataplane::classes::Classes;
use millrace_dataplane::classes::successor::Successor;
use millrace_dataplane::worker::Link;
use millrace_dataplane::worker::classed::Guests;
use millrace_dataplane::worker::condition::Condition;

use crate::chain::Maker;
use crate::exposed::Exposed;
use crate::profile::Profiler;
use crate::reload::{Recipe, Source};
use crate::trace::Tracer;
use crate::trouble::Trouble;

/// An element of what runs.
#[derive(Clone)]
pub struct Element {
    /// its number in the run
    pub id: u64,
    /// its name: unlike that of the others
    pub name: String,
    /// names of its ports, or their numbers
    pub ports: Vec<String>,
    /// a function's state as it is seen from outside; a guest shows none
    pub exposed: Option<Arc<Exposed>>,
    /// the programs that it hosts, and of each its packet class where there is one for each
    pub guests: Vec<(Option<u32>, Arc<Condition>)>,
    /// what it was made from, where a chain file says that
    pub recipe: Option<Recipe>,
    /// why nothing can be beside it whose state is divided over the workers, if so; none where it was there from the start, and whoever makes
    /// elements knows ([`Maker::alone`])
    pub alone: Option<Option<String>>,
    /// what goes with buckets of it; none where it was there from the start, or its state does not go with them
    pub successor: Option<Arc<Successor>>,
}

impl Element {
    /// Whether workers have parts of its state, by what they get of its packets.
    pub(crate) fn divided(&self) -> bool {
        let mut shares = self.exposed.iter().flat_map(|e| &e.shares);
        shares.any(millrace_dataplane::share::Share::divided)
    }
}

/// The programs that a link hosts, as an element has them. No worker has taken them yet.
#[must_use]
pub fn hosted(link: &Link) -> Vec<(Option<u32>, Arc<Condition>)> {
    let class = |class| link.classed().then_some(class);
    (0..).map(class).zip(link.conditions()).collect()
}

/// The function that a request is about.
#[derive(Clone)]
pub struct Target {
    /// its number in the run
    pub id: u64,
    /// its state
    pub exposed: Arc<Exposed>,
    /// its name, where it is needed to tell its objects from those of others
    pub prefix: Option<String>,
}

impl Target {
    /// A name of its own as requests use it.
    #[must_use]
    pub fn named(&self, name: &str) -> String {
        match &self.prefix {
            Some(prefix) if !self.exposed.linked => format!("{prefix}:{name}"),
            _ => name.to_owned(),
        }
    }
}

/// All of them, in their order. It changes when the chain does.
pub struct Elements {
    /// of the run
    pub name: String,
    list: RwLock<Vec<Element>>,
    /// what makes new elements, where the chain can be changed
    pub(crate) maker: OnceLock<Box<dyn Maker>>,
    /// what reads the chain file again, where there is one
    pub(crate) source: OnceLock<Box<dyn Source>>,
    /// what traces packets, where that is possible
    pub(crate) tracer: OnceLock<Box<dyn Tracer>>,
    /// what says what counts mean, where that is possible
    pub(crate) profiler: OnceLock<Box<dyn Profiler>>,
    /// the packet classes, where there are some
    pub(crate) classes: OnceLock<Parted>,
}

/// The packet classes of a run.
pub struct Parted {
    /// which worker has which
    pub classes: Arc<Classes>,
    guests: OnceLock<Vec<(String, Arc<Guests>)>>,
}

impl Parted {
    /// Elements that are there once for each class, with their names; none before they have been started.
    #[must_use]
    pub fn guests(&self) -> &[(String, Arc<Guests>)] {
        self.guests.get().map_or(&[], Vec::as_slice)
    }
}

impl Elements {
    /// Of a run with this name. Elements have the numbers that a chain gives them: from 0, in its order.
    #[must_use]
    pub fn new(name: &str, list: Vec<Element>) -> Self {
        Self {
            name: name.to_owned(),
            list: RwLock::new(list),
            maker: OnceLock::new(),
            source: OnceLock::new(),
            tracer: OnceLock::new(),
            profiler: OnceLock::new(),
            classes: OnceLock::new(),
        }
    }

    /// Of one function.
    #[must_use]
    pub fn one(exposed: Arc<Exposed>) -> Self {
        let element = Element {
            id: 0,
            name: exposed.name.clone(),
            ports: Vec::new(),
            exposed: Some(exposed),
            guests: Vec::new(),
            recipe: None,
            alone: None,
            successor: None,
        };
        Self::new(&element.name.clone(), vec![element])
    }

    /// Of what shows nothing: counts and orders only.
    #[must_use]
    pub fn none(name: &str) -> Self {
        Self::new(name, Vec::new())
    }

    /// Lets the chain be changed.
    pub fn changeable(&self, maker: Box<dyn Maker>) {
        // A run says so once.
        let _ = self.maker.set(maker);
    }

    /// Lets packets be traced.
    pub fn traceable(&self, tracer: Box<dyn Tracer>) {
        // A run says so once.
        let _ = self.tracer.set(tracer);
    }

    /// Lets the run be profiled.
    pub fn profiled(&self, profiler: Box<dyn Profiler>) {
        // A run says so once.
        let _ = self.profiler.set(profiler);
    }

    /// Lets the chain be made anew from its file: `recipes` are those of the elements, in their order.
    pub fn reloadable(&self, source: Box<dyn Source>, recipes: Vec<Recipe>) {
        let mut list = self.list();
        for (element, recipe) in list.iter_mut().zip(recipes) {
            element.recipe = Some(recipe);
        }
        self.now(list);
        // A run says so once.
        let _ = self.source.set(source);
    }

    /// Lets packet classes be seen and moved.
    pub fn parted(&self, classes: &Arc<Classes>) {
        // A run says so once.
        let _ = self.classes.set(Parted {
            classes: classes.clone(),
            guests: OnceLock::new(),
        });
    }

    /// The elements that are there once for each packet class, with their names, have been started.
    pub fn hosted(&self, guests: Vec<(String, Arc<Guests>)>) {
        if let Some(parted) = self.classes.get() {
            let _ = parted.guests.set(guests);
        }
    }

    /// These links have been started: element `i` is the i-th of them.
    pub fn started(&self, links: &[Link]) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        for (element, link) in list.iter_mut().zip(links) {
            element.guests = hosted(link);
        }
    }

    /// The elements.
    #[must_use]
    pub fn list(&self) -> Vec<Element> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.clone()
    }

    pub(crate) fn now(&self, list: Vec<Element>) {
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
    }

    /// The functions.
    #[must_use]
    pub fn functions(&self) -> Vec<Target> {
        let list = self.list();
        let functions = list.iter().filter(|e| e.exposed.is_some());
        let several = functions.clone().count() > 1;
        functions
            .filter_map(|e| {
                Some(Target {
                    id: e.id,
                    exposed: e.exposed.clone()?,
                    prefix: several.then(|| e.name.clone()),
                })
            })
            .collect()
    }

    /// The function whose object is meant by `FUNCTION:OBJECT`, or by OBJECT where it is the only one of this name;
    /// and the object's name.
    ///
    /// # Errors
    /// There is no such function, or several could be meant.
    pub fn object<'a>(&self, name: &'a str) -> Result<(Target, &'a str), Trouble> {
        let has = |target: &Target, name: &str| target.exposed.index(name).is_ok();
        self.find(name, "no-such-object", "object", has, |target| {
            target
                .exposed
                .objects()
                .map(|(_, o)| target.named(&o.name))
                .collect()
        })
    }

    /// The same of a parameter.
    ///
    /// # Errors
    /// As [`Self::object`].
    pub fn param<'a>(&self, name: &'a str) -> Result<(Target, &'a str), Trouble> {
        let has =
            |target: &Target, name: &str| target.exposed.params.iter().any(|p| p.name == name);
        self.find(name, "no-such-parameter", "parameter", has, |target| {
            target
                .exposed
                .params
                .iter()
                .map(|p| target.named(&p.name))
                .collect()
        })
    }

    fn find<'a>(
        &self,
        name: &'a str,
        code: &str,
        what: &str,
        has: impl Fn(&Target, &str) -> bool,
        names: impl Fn(&Target) -> Vec<String>,
    ) -> Result<(Target, &'a str), Trouble> {
        let functions = self.functions();
        if let Some((function, rest)) = name.split_once(':') {
            let list = self.list();
            let element = list.iter().find(|e| e.name == function);
            if let Some(element) = element {
                let found = functions.iter().find(|t| t.id == element.id);
                return found.map(|t| (t.clone(), rest)).ok_or_else(|| {
                    Trouble::new(code, format!("{function} is a guest, and shows no {what}s"))
                        .help("name a function")
                });
            }
        }
        let with: Vec<_> = functions.iter().filter(|t| has(t, name)).collect();
        match (with.as_slice(), functions.as_slice()) {
            ([one], _) => Ok(((*one).clone(), name)),
            // What it lacks is told in its own words.
            ([], [one]) => Ok((one.clone(), name)),
            ([], []) => Err(Trouble::new(code, format!("the run shows no {what}s"))
                .help("it hosts guests only, or the kernel has its state")),
            ([], all) => {
                let known: Vec<_> = all.iter().flat_map(names).collect();
                let help = match known.as_slice() {
                    [] => format!("its functions have no {what}s"),
                    known => format!("the functions have {}", known.join(", ")),
                };
                Err(Trouble::new(code, format!("there is no such {what}")).help(help))
            }
            (several, _) => {
                let full: Vec<_> = several.iter().map(|t| t.named(name)).collect();
                Err(
                    Trouble::new("ambiguous", format!("several functions have `{name}`"))
                        .help(format!("write {}", full.join(" or "))),
                )
            }
        }
    }
}

impl Exposed {
    /// Of what shows no state.
    #[must_use]
    pub fn nothing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            objects: Vec::new(),
            lists: Vec::new(),
            types: BTreeMap::new(),
            programs: Vec::new(),
            params: Vec::new(),
            shares: Vec::new(),
            owning: None,
            keeping: Vec::new(),
            details: Vec::new(),
            classes: Vec::new(),
            linked: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use millrace_dataplane::module::ObjectInfo;

    use super::*;

    fn element(id: u64, name: &str, objects: &[&str]) -> Element {
        let info = |object: &&str| ObjectInfo {
            name: (*object).to_owned(),
            kind: &millrace_object::state::hash::KIND,
            key_bytes: 4,
            value_bytes: 4,
            capacity: 1,
            bytes: 0,
            records: false,
        };
        Element {
            id,
            name: name.into(),
            ports: Vec::new(),
            exposed: Some(Arc::new(Exposed {
                objects: objects.iter().map(|o| (info(o), true)).collect(),
                ..Exposed::nothing(name)
            })),
            guests: Vec::new(),
            recipe: None,
            alone: None,
            successor: None,
        }
    }

    #[test]
    fn objects_are_named_by_their_function_where_that_is_needed() {
        let guest = Element {
            exposed: None,
            ..element(2, "tap", &[])
        };
        let all = [element(0, "a", &["x", "y"]), element(1, "b", &["x"]), guest];
        let elements = Elements::new("run", all.to_vec());
        let found = |name| {
            let found = elements.object(name);
            found.map(|(t, o)| (t.id, o.to_owned())).map_err(|t| t.code)
        };
        assert_eq!(found("y"), Ok((0, "y".into())));
        assert_eq!(found("b:x"), Ok((1, "x".into())));
        assert_eq!(found("x"), Err("ambiguous".into()));
        assert_eq!(found("z"), Err("no-such-object".into()));
        assert_eq!(found("tap:x"), Err("no-such-object".into()));
        let one = Elements::new("run", vec![element(7, "a", &["x"])]);
        assert_eq!(one.object("x").unwrap().0.prefix, None);
        assert_eq!(one.object("a:x").unwrap().0.id, 7);
        assert!(Elements::none("n").object("x").is_err());
    }
}
