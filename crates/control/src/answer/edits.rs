//! Edits of state objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millrace_dataplane::mailbox::Desk;
use serde_json::{Value, json};

use super::{Result, Session, state};
use crate::edit::{self, Change};
use crate::elements::Target;
use crate::pending::Pending;
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
        let changes = self.owned(&target, &changes)?;
        let (id, exposed, all) = (target.id, target.exposed.clone(), changes.clone());
        let done = match self.replicas_of(&target.exposed)? {
            Some(group) => {
                let done = self.together(&group, false, move |instance, now| {
                    let worker = instance.worker() as usize;
                    edit::apply((instance, worker), &all, &exposed, now, &mut Vec::new())
                })?;
                done.into_iter().collect::<Result<Vec<_>>>()?
            }
            None => self.everywhere(id, move |desk, taken| {
                let (now, worker) = (desk.now, desk.worker);
                edit::apply((state(desk, id)?, worker), &all, &exposed, now, taken)
            })?,
        };
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

    /// Lets every worker make its part of a change of an element; where one cannot, the others take theirs back.
    fn everywhere<T: Send + 'static>(
        &self,
        id: u64,
        job: impl FnMut(&mut Desk<'_>, &mut Vec<Change>) -> Result<T> + Clone + Send + 'static,
    ) -> Result<Vec<T>> {
        let mailboxes = &self.context.mailboxes;
        let posted = mailboxes.iter().map(|mailbox| {
            let mut job = job.clone();
            Pending::post(mailbox, move |desk| {
                let mut taken = Vec::new();
                let done = job(desk, &mut taken)?;
                Ok((done, taken))
            })
        });
        let posted: Vec<_> = posted.collect();
        let waited = posted.into_iter().map(|p| p?.wait()?);
        let (mut all, mut takes, mut failed) = (Vec::new(), Vec::new(), None);
        for (mailbox, done) in mailboxes.iter().zip(waited) {
            match done {
                Ok((done, taken)) => {
                    all.push(done);
                    takes.push((mailbox, taken));
                }
                Err(trouble) => failed = failed.or(Some(trouble)),
            }
        }
        let Some(trouble) = failed else {
            return Ok(all);
        };
        let taken_back = takes.into_iter().map(|(mailbox, mut taken)| {
            Pending::post(mailbox, move |desk: &mut Desk<'_>| {
                let now = desk.now;
                if let Ok(instance) = state(desk, id) {
                    edit::undo(instance, std::mem::take(&mut taken), now);
                }
            })
        });
        let taken_back: Vec<_> = taken_back.collect();
        for pending in taken_back {
            // One that has ended has no state any more.
            let _ = pending.and_then(Pending::wait);
        }
        Err(trouble)
    }

    /// The same changes, in which each entry of a divided object is for its worker; and the places of those of which that is not known, with the reason.
    pub(super) fn placed(
        &self,
        target: &Target,
        changes: &[Change],
    ) -> (Vec<Change>, Vec<(usize, Trouble)>) {
        let exposed = &target.exposed;
        let parted = |object: usize| exposed.share(object).divided() && !exposed.indexed(object);
        let mut all = Vec::with_capacity(changes.len());
        let mut places = Vec::new();
        for change in changes.iter() {
            let Change::Set { object, key, value } = change else {
                all.push(change.clone());
                continue;
            };
            if !parted(*object) {
                all.push(change.clone());
                continue;
            }
            match self.context.elements.owner(target, *object, key) {
                Ok(worker) => all.push(Change::Put {
                    object: *object,
                    key: key.clone(),
                    value: value.clone(),
                    worker,
                }),
                // One that is there already can be set all the same.
                Err(why) => {
                    places.push((all.len(), why));
                    all.push(change.clone());
                }
            }
        }
        (all, places)
    }

    /// The same changes, in which each entry of a divided object is for its worker.
    ///
    /// # Errors
    /// No worker of this run has an entry, and none is to have it.
    pub(super) fn owned(
        &self,
        target: &Target,
        changes: &Arc<Vec<Change>>,
    ) -> Result<Arc<Vec<Change>>> {
        let (all, places) = self.placed(target, changes);
        let all = Arc::new(all);
        if places.is_empty() {
            return Ok(all);
        }
        let (id, sets) = (target.id, all.clone());
        let wanted: Arc<Vec<usize>> = Arc::new(places.iter().map(|(at, _)| *at).collect());
        let have = self.each(move |desk| {
            let now = desk.now;
            let instance = state(desk, id)?;
            let has = |at: &usize| match sets.get(*at) {
                Some(Change::Set { object, key, .. }) => {
                    instance.get(*object, key, now).is_ok_and(|v| v.is_some())
                }
                _ => false,
            };
            Ok(wanted.iter().map(has).collect::<Vec<_>>())
        })?;
        let have = have.into_iter().collect::<Result<Vec<_>>>()?;
        for (at, (_, why)) in places.into_iter().enumerate() {
            if !have.iter().any(|of| of.get(at) == Some(&true)) {
                return Err(Trouble {
                    what: format!(
                        "the object is divided over the workers, none of them has this entry, and {}",
                        why.what
                    ),
                    ..why
                });
            }
        }
        Ok(all)
    }
}
