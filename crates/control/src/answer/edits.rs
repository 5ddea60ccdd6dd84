//! Edits of state objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{Result, Session, state};
use crate::edit::{self, Change};
use crate::elements::Target;
use crate::protocol::{Edit, MOST_STAGED, Request};
use crate::trouble::Trouble;

impl Session {
    pub(super) fn edit(&mut self, request: &Request) -> Result<Value> {
        let result = self.edit_all(request);
        if result.is_err() || !request.more {
            self.forget();
        }
        result
    }

    fn edit_all(&mut self, request: &Request) -> Result<Value> {
        for (at, edit) in request.edits.iter().enumerate() {
            let changes = self.of_one(edit).map_err(|t| Trouble {
                what: format!("edit {}: {}", self.staged.len() + 1, t.what),
                ..t
            });
            let changes = changes.map_err(|t| match (at, request.more) {
                // One edit needs no number.
                (0, false) if request.edits.len() == 1 && self.staged.is_empty() => Trouble {
                    what: t.what.trim_start_matches("edit 1: ").to_owned(),
                    ..t
                },
                _ => t,
            })?;
            let bytes: usize = changes.iter().map(Change::bytes).sum();
            let all = self.context.staged.fetch_add(bytes, Ordering::Relaxed);
            self.bytes += bytes;
            if all + bytes > MOST_STAGED {
                return Err(Trouble::new(
                    "too-large",
                    format!("edits of more than {MOST_STAGED} bytes wait to be made together"),
                )
                .help("make them in several parts; nothing was changed"));
            }
            self.staged.extend(changes);
        }
        if request.more {
            return Ok(json!({ "staged": self.staged.len() }));
        }
        let functions = self.context.elements.functions();
        let mut functions = functions.into_iter();
        let target = match self.whose {
            Some(id) => functions.find(|t| t.id == id),
            // Nothing is to be done, and it is done by whichever is there.
            None => functions.next(),
        };
        let Some(target) = target else {
            return Err(
                Trouble::new("no-such-element", "the function has left the chain").help(
                    "nothing was changed; `millrace ctl chain show` lists those that are there",
                ),
            );
        };
        let changes = edit::compiled(std::mem::take(&mut self.staged), &target.exposed)?;
        let changes = Arc::new(changes);
        if self.replicas_of(&target.exposed)?.is_some()
            && changes
                .iter()
                .any(|c| target.exposed.share(c.object()).divided())
        {
            return Err(Trouble::new(
                "refused",
                "each worker has a part of it beside what all workers repeat from rows, and entries of heavy keys move while packets come \
                 (--strategy hybrid)",
            )
            .help("nothing was changed; only packets change it, or run it with --strategy shard or replicate"));
        }
        self.owned(&target, &changes)?;
        let (id, exposed, all) = (target.id, target.exposed.clone(), changes.clone());
        let done = match self.replicas_of(&target.exposed)? {
            Some(group) => self.together(&group, false, move |instance, now| {
                edit::apply(instance, &all, &exposed, now, &mut Vec::new())
            })?,
            None => self.each(move |desk| {
                let now = desk.now;
                edit::apply(state(desk, id)?, &all, &exposed, now, &mut Vec::new())
            })?,
        };
        let done = done.into_iter().collect::<Result<Vec<_>>>()?;
        edit::told(&changes, &target.exposed);
        // What all have alike counts once, what each has a part of as often as it was done.
        let mut all = done.first().map(|(copies, _)| *copies).unwrap_or_default();
        for (_, part) in done {
            all.set += part.set;
            all.deleted += part.deleted;
        }
        Ok(json!({ "set": all.set, "deleted": all.deleted }))
    }

    /// The changes of an edit. All edits of a request are of one function, whose state changes at one moment.
    fn of_one(&mut self, edit: &Edit) -> Result<Vec<Change>> {
        let (target, object) = self.context.elements.object(&edit.object)?;
        if self.whose.is_some_and(|id| id != target.id) {
            return Err(
                Trouble::new("malformed", format!("{}: of another function", edit.object))
                    .help("send edits of each function in requests of their own"),
            );
        }
        self.whose = Some(target.id);
        let edit = Edit {
            object: object.to_owned(),
            ..edit.clone()
        };
        Change::of(&edit, &target.exposed)
    }

    /// Refuses new entries of divided objects: nothing says whose they would be.
    pub(super) fn owned(&self, target: &Target, changes: &Arc<Vec<Change>>) -> Result<()> {
        let parted = |change: &Change| match change {
            Change::Set { object, .. } => {
                target.exposed.share(*object).divided() && !target.exposed.indexed(*object)
            }
            _ => false,
        };
        let places: Arc<Vec<usize>> = {
            let all = changes.iter().enumerate();
            Arc::new(all.filter(|(_, c)| parted(c)).map(|(at, _)| at).collect())
        };
        if places.is_empty() {
            return Ok(());
        }
        let (id, all, wanted) = (target.id, changes.clone(), places.clone());
        let have = self.each(move |desk| {
            let now = desk.now;
            let instance = state(desk, id)?;
            let has = |at: &usize| match all.get(*at) {
                Some(Change::Set { object, key, .. }) => {
                    instance.get(*object, key, now).is_ok_and(|v| v.is_some())
                }
                _ => false,
            };
            Ok(wanted.iter().map(has).collect::<Vec<_>>())
        })?;
        let have = have.into_iter().collect::<Result<Vec<_>>>()?;
        let nobodys = |at: &usize| !have.iter().any(|of| of.get(*at) == Some(&true));
        if (0..places.len()).any(|at| nobodys(&at)) {
            return Err(Trouble::new(
                "refused",
                "the object is divided over the workers, and none of them has this entry",
            )
            .help("only packets add entries to it; those that are there can be set and deleted"));
        }
        Ok(())
    }
}
