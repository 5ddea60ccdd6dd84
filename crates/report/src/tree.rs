//! Paths as a tree of decisions: conditions that paths share, and what follows them, are printed once. Where the same
//! subtree follows in two places, the second refers to the first.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use millrace_model::exec::Access;
use millrace_model::expr::ExprId;
use millrace_model::expr::sets::{Place, Set};
use millrace_model::known::Of;
use millrace_model::model::{Entry, Path};

use super::access;
use super::document::Rewrite;
use super::rewrite::rewrites;
use super::share::{key, share};
use super::verdict::verdict;
use super::{Context, dependences};
use crate::layout::Layout;
use crate::words::{Keys, Printer};

/// How many decisions after each other are shown: a person follows fewer, and each is a level of the stack
/// for whatever reads the tree.
const DEEPEST: usize = 160;

/// The decisions of one entry.
pub struct Tree {
    /// the entry's function
    pub entry: String,
    /// what makes it run
    pub role: String,
    /// how many paths
    pub paths: usize,
    /// the first
    pub root: Node,
}

/// Events once the conditions so far hold.
pub struct Node {
    /// a number by which others refer to it; none where none does
    pub label: Option<usize>,
    /// what is done to state, on every path from here
    pub accesses: Vec<Line>,
    /// and then
    pub then: Then,
    /// how many paths end below
    pub paths: usize,
    pub(super) key: u64,
    salt: u64,
}

/// Continuation of a node.
pub enum Then {
    /// the end
    End(End),
    /// one of these
    Branches(Vec<Branch>),
    /// the same as at the node of this label
    Same(usize),
    /// more decisions than are shown
    Deeper,
}

/// A way on.
pub struct Branch {
    /// all of which hold; empty for what is left by all others
    pub conditions: Vec<String>,
    /// the first condition is the contrary of the other branch's first
    pub contrary: bool,
    /// what follows
    pub node: Node,
    pub(super) salt: u64,
}

/// The end of a path.
pub struct End {
    /// packet writes
    pub rewrites: Vec<Rewrite>,
    /// the verdict
    pub verdict: String,
    /// what it depends on that is no packet, and doubts
    pub notes: Vec<&'static str>,
}

/// One access, or several reads of one entry.
pub struct Line {
    /// the object's index
    pub object: usize,
    /// in words
    pub text: String,
    /// FILE:LINE
    pub line: Option<String>,
    /// the line's text
    pub source: Option<String>,
}

/// A path and how much of it is told.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    path: &'a Path,
    accesses: usize,
}

struct Builder<'a> {
    context: &'a Context<'a>,
    entry: &'a Entry,
}

/// The trees of an entry's paths: one, and one behind each cut.
pub(super) fn trees(context: &Context<'_>, entry: &Entry) -> Vec<Tree> {
    let segments: BTreeSet<u32> = entry.paths.iter().map(|p| p.segment).collect();
    let segments = segments.into_iter();
    segments.map(|s| tree(context, entry, s)).collect()
}

fn tree(context: &Context<'_>, entry: &Entry, segment: u32) -> Tree {
    let waiting: Vec<Waiting<'_>> = entry
        .paths
        .iter()
        .filter(|path| path.segment == segment)
        .map(|path| Waiting { path, accesses: 0 })
        .collect();
    let paths = waiting.len();
    let builder = Builder { context, entry };
    let mut root = builder.node(&waiting, 0, 0);
    share(&mut root);
    Tree {
        entry: match segment {
            0 => entry.function.clone(),
            cut => format!("{} behind cut {cut}", entry.function),
        },
        role: super::role(entry.role),
        paths,
        root,
    }
}

impl<'a> Builder<'a> {
    fn printer<'b>(&'b self, layout: &'b Layout, keys: &'b Keys) -> Printer<'b> {
        self.context.printer(&self.entry.arena, layout, keys)
    }

    /// How many more conditions all have in common; none where there is nobody.
    fn common(&self, waiting: &[Waiting<'_>], from: usize) -> Option<usize> {
        let first = waiting.first()?;
        let rest = first.path.guard.get(from..).unwrap_or(&[]);
        let shared = |(i, e): &(usize, &ExprId)| {
            waiting
                .iter()
                .all(|w| w.path.guard.get(from + i) == Some(*e))
        };
        Some(rest.iter().enumerate().take_while(shared).count())
    }

    /// The node of paths that have their first conditions in common.
    fn node(&self, waiting: &[Waiting<'a>], told: usize, depth: usize) -> Node {
        let Some(first) = waiting.first() else {
            return Node {
                label: None,
                accesses: Vec::new(),
                then: Then::Branches(Vec::new()),
                paths: 0,
                key: 0,
                salt: 0,
            };
        };
        let guard = first.path.guard.get(..told).unwrap_or(&[]);
        let layout = Layout::of(&self.entry.arena, guard, &self.context.memory);
        let keys = self.context.keys(first.path);
        let printer = self.printer(&layout, &keys);
        let (common, agree) = shared_accesses(waiting);
        let from = first.accesses;
        let now = first.path.accesses.get(from..from + common).unwrap_or(&[]);
        let accesses = access::lines(&printer, self.context, now, &agree);
        let waiting: Vec<Waiting<'a>> = waiting
            .iter()
            .map(|w| Waiting {
                accesses: w.accesses + common,
                ..*w
            })
            .collect();
        let ended = |w: &&Waiting<'_>| w.path.guard.len() <= told;
        let mut salt = 0_u64;
        let mut accesses = accesses;
        let then = if waiting.len() == 1 && waiting.iter().all(|w| ended(&w)) {
            let (end, s) = self.end(&printer, first.path);
            salt = s;
            Then::End(end)
        } else if depth == DEEPEST {
            let mut h = DefaultHasher::new();
            waiting.iter().for_each(|w| w.path.guard.hash(&mut h));
            salt = h.finish();
            Then::Deeper
        } else {
            match Self::either(self.branches(&waiting, told, depth + 1)) {
                Ok(node) => {
                    accesses.extend(node.accesses);
                    salt = node.salt;
                    node.then
                }
                Err(all) => Then::Branches(all),
            }
        };
        let mut node = Node {
            label: None,
            accesses,
            then,
            paths: waiting.len(),
            key: 0,
            salt,
        };
        node.key = key(&node, salt);
        node
    }

    fn branches(&self, waiting: &[Waiting<'a>], told: usize, depth: usize) -> Vec<Branch> {
        let mut groups: Vec<(Option<ExprId>, Vec<Waiting<'a>>)> = Vec::new();
        for w in waiting {
            let next = w.path.guard.get(told).copied();
            // Paths that end under the same conditions are apart all the same.
            match groups.iter_mut().find(|g| g.0 == next && next.is_some()) {
                Some(g) => g.1.push(*w),
                None => groups.push((next, vec![*w])),
            }
        }
        let a = &self.entry.arena;
        let not = |e: ExprId, f: ExprId| a.negated(f) == Some(e);
        let contrary = match groups.as_slice() {
            [(Some(e), _), (Some(f), _)] => not(*e, *f) || not(*f, *e),
            _ => false,
        };
        let mut all: Vec<Branch> = groups
            .iter()
            .map(|(_, group)| {
                let more = self.common(group, told).unwrap_or(0);
                let (conditions, salt) = self.conditions(group, told, more);
                Branch {
                    conditions,
                    contrary,
                    node: self.node(group, told + more, depth),
                    salt,
                }
            })
            .collect();
        rest_last(&mut all);
        all
    }

    /// Where both ways go on alike, the way is the same.
    fn either(mut all: Vec<Branch>) -> Result<Node, Vec<Branch>> {
        let one = |b: &Branch| b.contrary && b.conditions.len() <= 1;
        let alike = match all.as_slice() {
            [a, b] => one(a) && one(b) && a.node.key == b.node.key,
            _ => false,
        };
        if !alike {
            return Err(all);
        }
        all.pop().map(|b| b.node).ok_or(all)
    }

    /// The conditions of a group from one place on, without those that say nothing.
    fn conditions(&self, group: &[Waiting<'a>], told: usize, more: usize) -> (Vec<String>, u64) {
        let Some(first) = group.first() else {
            return (Vec::new(), 0);
        };
        let mut out = Vec::new();
        let mut salt = 0_u64;
        let keys = self.context.keys(first.path);
        // What is said of one byte in several conditions is said once, where the first of them stands.
        let arena = &self.entry.arena;
        let places: Vec<Option<Place>> = (told..told + more)
            .map(|at| {
                let set = self.context.memory.set(arena, *first.path.guard.get(at)?);
                set.map(|s| s.0)
            })
            .collect();
        for (i, at) in (told..told + more).enumerate() {
            let (Some(before), Some(e)) = (first.path.guard.get(..at), first.path.guard.get(at))
            else {
                break;
            };
            let place = places.get(i).copied().flatten();
            let mut others = places.iter().enumerate().filter(|p| *p.1 == place);
            if place.is_some() && others.next().is_some_and(|p| p.0 < i) {
                continue;
            }
            let mut all = vec![*e];
            if place.is_some() {
                all.extend(others.filter_map(|p| first.path.guard.get(told + p.0).copied()));
            }
            let (text, s) = self.context.condition(self.entry, before, &all, &keys);
            salt = salt.rotate_left(9) ^ s;
            out.extend(text);
        }
        if let [_, _, ..] = out.as_slice() {
            out.iter_mut().for_each(enclose);
        }
        (out, salt)
    }

    fn end(&self, printer: &Printer<'_>, path: &Path) -> (End, u64) {
        let (rewrites, salt) = rewrites(printer, &path.rewrites);
        let on = dependences(self.context, self.entry, path);
        let notes = [
            (on.time, "time"),
            (on.random, "random"),
            (on.order, "order"),
        ];
        let mut notes: Vec<&'static str> = notes
            .iter()
            .filter_map(|(is, n)| is.then_some(*n))
            .collect();
        if path.undecided {
            notes.push("may be impossible");
        }
        let end = End {
            rewrites,
            verdict: verdict(printer, path, self.context.program, self.entry.role),
            notes,
        };
        (end, salt)
    }
}

impl Context<'_> {
    /// A condition in words after those before it, or several about one byte; none where those before imply
    /// it.
    pub(super) fn condition(
        &self,
        entry: &Entry,
        before: &[ExprId],
        e: &[ExprId],
        keys: &Keys,
    ) -> (Option<String>, u64) {
        // Paths that begin alike say the same, and a path says it in the tree and in its own guard.
        let asked = (entry.arena.identity(), before.to_vec(), e.to_vec());
        let said = self.said.borrow().get(&asked).and_then(|all| {
            let same = all.iter().find(|(of, _)| of == keys);
            same.map(|(_, said)| said.clone())
        });
        if let Some(said) = said {
            return said;
        }
        let said = self.worded(entry, before, e, keys);
        let mut all = self.said.borrow_mut();
        let of = all.entry(asked).or_default();
        of.push((keys.clone(), said.clone()));
        said
    }

    fn worded(
        &self,
        entry: &Entry,
        before: &[ExprId],
        e: &[ExprId],
        keys: &Keys,
    ) -> (Option<String>, u64) {
        let layout = Layout::of(&entry.arena, before, &self.memory);
        let printer = self.printer(&entry.arena, &layout, keys);
        let all = self.memory.known.all(&entry.arena, before);
        let known = |at: Place| all.get(&Of::Byte(at)).cloned().unwrap_or_else(Set::all);
        let text = printer.given(e, &known);
        let salts = e
            .iter()
            .map(|e| text.as_ref().map_or(0, |t| printer.salt(t, *e)));
        let salt = salts.fold(0, |all, s| all ^ s);
        (text, salt)
    }
}

/// Puts alternatives into brackets that stand beside other conditions.
fn enclose(text: &mut String) {
    let mut depth = 0_i32;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ' ' if depth == 0 && text.get(i..).is_some_and(|t| t.starts_with(" or ")) => {
                *text = format!("({text})");
                return;
            }
            _ => {}
        }
    }
}

/// What could not be shown whole is what the others leave: if it is one branch, or several that only end.
fn rest_last(all: &mut Vec<Branch>) {
    let long = all.iter().filter(|b| b.salt != 0).count();
    if long == 0 || long == all.len() {
        return;
    }
    let only_ends = |b: &Branch| {
        let accesses = b.node.accesses.is_empty();
        accesses && matches!(&b.node.then, Then::End(end) if end.rewrites.is_empty())
    };
    if long > 1 && !all.iter().filter(|b| b.salt != 0).all(only_ends) {
        return;
    }
    let (mut rest, shown): (Vec<Branch>, Vec<Branch>) =
        std::mem::take(all).into_iter().partition(|b| b.salt != 0);
    *all = shown;
    let Some(mut last) = rest.pop() else { return };
    last.conditions.clear();
    for other in rest {
        last.node.paths += other.node.paths;
        if let (Then::End(to), Then::End(from)) = (&mut last.node.then, other.node.then) {
            if !to.verdict.split(" or ").any(|v| v == from.verdict) {
                to.verdict = format!("{} or {}", from.verdict, to.verdict);
            }
            for n in from.notes {
                if !to.notes.contains(&n) {
                    to.notes.push(n);
                }
            }
        }
    }
    all.push(last);
}

/// How many accesses all do next, and for each whether the same came of it.
fn shared_accesses(waiting: &[Waiting<'_>]) -> (usize, Vec<bool>) {
    let Some(first) = waiting.first() else {
        return (0, Vec::new());
    };
    let mut agree = Vec::new();
    for (i, a) in first.path.accesses.iter().enumerate().skip(first.accesses) {
        let i = i - first.accesses;
        let at = |w: &Waiting<'_>| w.path.accesses.get(w.accesses + i).cloned();
        let same = |b: &Access| {
            let leased = a.key.is_empty() || b.key.is_empty();
            let b = Access {
                outcome: a.outcome,
                key: if leased { a.key.clone() } else { b.key.clone() },
                ..b.clone()
            };
            b == *a
        };
        let all: Option<Vec<Access>> = waiting.iter().map(at).collect();
        match all {
            Some(all) if all.iter().all(same) => {
                agree.push(all.iter().all(|b| b.outcome == a.outcome));
            }
            _ => break,
        }
    }
    (agree.len(), agree)
}
