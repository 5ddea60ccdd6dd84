//! State that was saved by other workers than those that take it up: the parts of each object as one.
//!
//! Where each worker had a part of its own, the parts are what one worker has: of objects with keys the entries of all, of
//! allocators the leases of all, of elements those that packets have changed. One worker takes up the whole, or several
//! that share it. Which of several workers with parts of their own an entry would belong to, the state does not say.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::state;
use millrace_state::{Content, Form, Identity, Object, Piece, What};

use crate::saved::{LOCKED, REPLICATED};

/// Each worker had, or has, a copy.
pub const COPIED: &str = "copied";

/// What the workers take up of an object: as many contents as there are workers, or one that all share.
///
/// # Errors
/// Its parts cannot be one, or one of them cannot be parts.
pub fn contents(saved: &Object, now: &Identity, workers: usize) -> Result<Vec<Content>, String> {
    let before = saved.identity.held.as_str();
    let form = Form {
        key_bytes: saved.identity.key_bytes as usize,
        value_bytes: saved.identity.value_bytes as usize,
    };
    let whole = match (saved.parts.as_slice(), before) {
        ([], _) => return Err("no parts".to_owned()),
        ([one], _) => one.clone(),
        ([first, ..], COPIED) => first.clone(),
        (parts, "divided" | "alone") => union(saved, parts, form)?,
        (_, how) => {
            return Err(format!(
                "{how} on several workers, whose parts cannot be one"
            ));
        }
    };
    match now.held.as_str() {
        LOCKED | REPLICATED => Ok(vec![whole]),
        _ if workers == 1 => Ok(vec![whole]),
        COPIED => Ok(vec![whole; workers]),
        how => Err(format!(
            "{how} on the workers now: which of them an entry belongs to is not saved"
        )),
    }
}

fn union(saved: &Object, parts: &[Content], form: Form) -> Result<Content, String> {
    let name = saved.identity.kind.as_str();
    let kind = state::by_name(name).filter(|kind| !kind.per_cpu && !kind.evicts);
    match kind {
        Some(kind) if kind.is_table() => keyed(parts, form),
        Some(kind) if kind.leases() => leased(parts, form),
        // Of a distributed object a part is no other place.
        Some(kind) if kind.has_all() && *kind != state::distributed::KIND => {
            elements(parts, form, &saved.before)
        }
        _ => Err(format!("parts of kind {name} cannot be one")),
    }
}

/// The pieces of a part.
fn pieces(part: &Content, form: Form) -> Result<Vec<Piece<'_>>, String> {
    part.pieces(form)
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())
}

fn timed(piece: &Piece<'_>) -> Result<(), String> {
    match piece.callback {
        0 => Ok(()),
        _ => Err("timers of several workers cannot be one's".to_owned()),
    }
}

/// An entry whose expiry is an event is due by its stamp: those of one moment come in the order of their places, as no
/// order among those of several workers is known.
fn unordered(piece: Piece<'_>) -> Result<Piece<'_>, String> {
    if piece.bound == 0 {
        timed(&piece)?;
        return Ok(piece);
    }
    Ok(Piece {
        callback: 0,
        due: u64::MAX,
        order: 0,
        ..piece
    })
}

/// Entries by key, one behind the other; all other places are free.
fn keyed(parts: &[Content], form: Form) -> Result<Content, String> {
    let mut full = 0_u64;
    let mut keys = BTreeSet::new();
    let mut entries = Vec::new();
    for part in parts {
        for piece in pieces(part, form)? {
            let piece = unordered(piece)?;
            match piece.what {
                What::Head => full = full.saturating_add(piece.stamp),
                What::Entry if !keys.insert(piece.key) => {
                    return Err("two workers have the same key".to_owned());
                }
                What::Entry => entries.push(piece),
                _ => {}
            }
        }
    }
    let mut all = Content::default();
    all.push(&Piece {
        stamp: full,
        length: entries.len() as u64,
        ..Piece::new(What::Head)
    });
    for (place, piece) in (0..).zip(&entries) {
        all.push(&Piece { place, ..*piece });
    }
    all.push(&Piece::new(What::End));
    Ok(all)
}

/// Numbers that a worker has leased are leased. Each of the others has been free since the last worker freed it; those that
/// nobody ever leased come first, as in an allocator that is new.
fn leased(parts: &[Content], form: Form) -> Result<Content, String> {
    let mut head: Option<Piece<'_>> = None;
    let mut leases: BTreeMap<u64, Piece<'_>> = BTreeMap::new();
    let mut free: BTreeMap<u64, u64> = BTreeMap::new();
    for part in parts {
        for piece in pieces(part, form)? {
            match (piece.what, &mut head) {
                (What::Head, None) => head = Some(piece),
                (What::Head, Some(all))
                    if (all.bound, all.length) == (piece.bound, piece.length) =>
                {
                    all.stamp = all.stamp.saturating_add(piece.stamp);
                    all.place = all.place.max(piece.place);
                }
                (What::Head, Some(_)) => return Err("workers leased other numbers".to_owned()),
                (What::Entry, _) if leases.insert(piece.place, piece).is_some() => {
                    return Err("two workers have leased the same number".to_owned());
                }
                (What::Free, _) => {
                    let since = free.entry(piece.place).or_default();
                    *since = (*since).max(piece.stamp);
                }
                _ => {}
            }
        }
    }
    let head = head.ok_or("no head")?;
    let mut all = Content::default();
    all.push(&head);
    for piece in leases.values() {
        all.push(piece);
    }
    // All below the head's place: what no worker has said of a number is that it was never leased.
    let others = (0..head.place.min(head.length)).filter(|n| !leases.contains_key(n));
    let mut others: Vec<(u64, u64)> = others
        .map(|n| (free.get(&n).copied().unwrap_or(0), n))
        .collect();
    others.sort_unstable();
    for (stamp, place) in others {
        all.push(&Piece {
            place,
            stamp,
            length: 1,
            ..Piece::new(What::Free)
        });
    }
    all.push(&Piece::new(What::End));
    Ok(all)
}

/// Elements are there on all workers; the one that is not as it was when packets began is its owner's.
fn elements(
    parts: &[Content],
    form: Form,
    before: &[(Vec<u8>, Vec<u8>)],
) -> Result<Content, String> {
    let number = |key: &[u8]| {
        let bytes = key.iter().rev();
        bytes.fold(0_u64, |n, b| n << 8 | u64::from(*b))
    };
    let before: BTreeMap<u64, &[u8]> = before
        .iter()
        .map(|(key, value)| (number(key), value.as_slice()))
        .collect();
    let zeros = vec![0; form.value_bytes];
    // By place the value on each worker; a blank element is not among the pieces.
    let mut each: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for (worker, part) in parts.iter().enumerate() {
        for piece in pieces(part, form)? {
            timed(&piece)?;
            if piece.what == What::Entry {
                let values = each
                    .entry(piece.place)
                    .or_insert_with(|| vec![&zeros[..]; parts.len()]);
                if let Some(value) = values.get_mut(worker) {
                    *value = piece.value;
                }
            }
        }
    }
    let mut all = Content::default();
    let first = parts.first().map(|p| pieces(p, form)).transpose()?;
    let head = first.and_then(|p| p.first().copied()).ok_or("no head")?;
    all.push(&head);
    for (place, values) in each {
        let was = before.get(&place).copied().unwrap_or(&zeros);
        let changed = values.iter().find(|v| **v != was);
        let value = changed.or(values.first()).copied().unwrap_or(was);
        if value.iter().any(|b| *b != 0) {
            all.push(&Piece {
                place,
                due: u64::MAX,
                length: form.value_bytes as u64,
                value,
                ..Piece::new(What::Entry)
            });
        }
    }
    all.push(&Piece::new(What::End));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a piece is, its place, stamp, key and value.
    type Given<'a> = (What, u64, u64, &'a [u8], &'a [u8]);
    type Read = (What, u64, u64, Vec<u8>, Vec<u8>);

    fn object(kind: &str, held: &str, parts: Vec<Content>) -> Object {
        Object {
            identity: identity(kind, held),
            parts,
            before: Vec::new(),
        }
    }

    fn identity(kind: &str, held: &str) -> Identity {
        Identity {
            name: "o".into(),
            kind: kind.into(),
            key_bytes: 1,
            value_bytes: 1,
            capacity: 8,
            held: held.into(),
            detail: String::new(),
        }
    }

    /// A head, pieces, an end.
    fn part(head: u64, pieces: &[Given<'_>]) -> Content {
        let mut all = Content::default();
        all.push(&Piece {
            place: head,
            length: 8,
            stamp: 1,
            ..Piece::new(What::Head)
        });
        for (what, place, stamp, key, value) in pieces {
            all.push(&Piece {
                place: *place,
                stamp: *stamp,
                length: 1,
                due: u64::MAX,
                key,
                value,
                ..Piece::new(*what)
            });
        }
        all.push(&Piece::new(What::End));
        all
    }

    /// The pieces of a content.
    fn read(all: &Content) -> Vec<Read> {
        let form = Form {
            key_bytes: 1,
            value_bytes: 1,
        };
        let each = all.pieces(form).map(Result::unwrap);
        each.map(|p| (p.what, p.place, p.stamp, p.key.to_vec(), p.value.to_vec()))
            .collect()
    }

    #[test]
    fn entries_of_all_workers_are_one_tables() {
        let parts = vec![
            part(0, &[(What::Entry, 2, 10, &[1], &[7])]),
            part(
                0,
                &[
                    (What::Entry, 2, 20, &[2], &[8]),
                    (What::Free, 3, 0, &[], &[]),
                ],
            ),
        ];
        let saved = object("map", "divided", parts.clone());
        let all = contents(&saved, &identity("map", COPIED), 1).unwrap();
        assert_eq!(all.len(), 1);
        let read = read(&all[0]);
        let entries: Vec<_> = read.iter().filter(|p| p.0 == What::Entry).collect();
        assert_eq!(
            entries,
            [
                &(What::Entry, 0, 10, vec![1], vec![7]),
                &(What::Entry, 1, 20, vec![2], vec![8])
            ]
        );
        // Insertions that found a part full.
        assert_eq!((read[0].0, read[0].2), (What::Head, 2));
        // Shared by three it is the same; parts of three it cannot be.
        let shared = contents(&saved, &identity("map", LOCKED), 3).unwrap();
        assert_eq!(shared, all);
        assert!(contents(&saved, &identity("map", "divided"), 3).is_err());
        // The same key twice.
        let twice = object("map", "divided", vec![parts[0].clone(), parts[0].clone()]);
        assert!(contents(&twice, &identity("map", COPIED), 1).is_err());
    }

    #[test]
    fn leases_of_all_workers_are_one_allocators() {
        // Of numbers 0 to 3 the first worker leases 1, and has freed 0; the second leases 2.
        let parts = vec![
            part(
                4,
                &[
                    (What::Entry, 1, 10, &[], &[7]),
                    (What::Free, 3, 0, &[], &[]),
                    (What::Free, 2, 0, &[], &[]),
                    (What::Free, 0, 5, &[], &[]),
                ],
            ),
            part(
                4,
                &[
                    (What::Entry, 2, 20, &[], &[8]),
                    (What::Free, 0, 0, &[], &[]),
                    (What::Free, 1, 0, &[], &[]),
                    (What::Free, 3, 0, &[], &[]),
                ],
            ),
        ];
        let saved = object("allocator", "divided", parts.clone());
        let all = contents(&saved, &identity("allocator", COPIED), 1).unwrap();
        let places: Vec<_> = read(&all[0]).iter().map(|p| (p.0, p.1, p.2)).collect();
        assert_eq!(
            places[1..],
            [
                (What::Entry, 1, 10),
                (What::Entry, 2, 20),
                (What::Free, 3, 0),
                (What::Free, 0, 5),
                (What::End, 0, 0)
            ]
        );
        let twice = object(
            "allocator",
            "divided",
            vec![parts[0].clone(), parts[0].clone()],
        );
        assert!(contents(&twice, &identity("allocator", COPIED), 1).is_err());
    }

    #[test]
    fn an_element_is_as_its_owner_has_it() {
        let parts = vec![
            part(
                0,
                &[
                    (What::Entry, 0, 0, &[], &[5]),
                    (What::Entry, 1, 0, &[], &[9]),
                ],
            ),
            part(
                0,
                &[
                    (What::Entry, 0, 0, &[], &[6]),
                    (What::Entry, 2, 0, &[], &[4]),
                ],
            ),
        ];
        let mut saved = object("vector", "divided", parts);
        // All began with 5 at 0; the second worker cleared what it had at 1, which began with 9.
        saved.before = vec![(vec![0], vec![5]), (vec![1], vec![9])];
        let all = contents(&saved, &identity("vector", COPIED), 1).unwrap();
        let values: Vec<_> = read(&all[0])
            .into_iter()
            .filter(|p| p.0 == What::Entry)
            .map(|p| (p.1, p.4))
            .collect();
        assert_eq!(values, [(0, vec![6]), (2, vec![4])]);
    }

    #[test]
    fn what_cannot_be_one_says_so() {
        let two = || vec![part(0, &[]), part(0, &[])];
        for (kind, held) in [("map", "merged"), ("sketch", "divided"), ("map", "own")] {
            let saved = object(kind, held, two());
            let why = contents(&saved, &identity(kind, COPIED), 1).unwrap_err();
            assert!(why.contains("cannot be one"), "{why}");
        }
        // Copies that nobody writes are on as many workers as there are.
        let saved = object("map", COPIED, two());
        assert_eq!(
            contents(&saved, &identity("map", COPIED), 3).unwrap().len(),
            3
        );
        // Bytes that no writer wrote.
        let broken = Content::from_bytes(vec![0xff; 9]);
        let saved = object("map", "divided", vec![broken.clone(), broken]);
        assert!(contents(&saved, &identity("map", COPIED), 1).is_err());
        assert!(
            contents(
                &object("map", "divided", Vec::new()),
                &identity("map", COPIED),
                1
            )
            .is_err()
        );
    }
}
