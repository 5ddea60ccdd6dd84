//! All content of a state object, taken out and put in again exactly: for a newer version of a function, and for the next
//! run.
//!
//! A kind says by itself what its content is (`KIND_save` and `KIND_load` of `fastpath/state`). Of kinds whose entries are
//! only set from outside, and which programs cannot tell an order of, it is the entries.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use millrace_object::contract::Holds;
use millrace_state::{Content, Form, Piece, What};

use super::control::control;
use super::instance::errno;
use super::{Instance, Module, ModuleError, ObjectInfo, abi};

/// What can be kept of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// all of its content
    All,
    /// there is nothing that packets have written, or that is not handed over at once
    Nothing,
    /// it cannot be, and why
    Never(&'static str),
}

/// An entry with its time, as it goes from one instance to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamped {
    /// its key
    pub key: Vec<u8>,
    /// its value
    pub value: Vec<u8>,
    /// when it was last refreshed, ns; 0 where entries do not expire
    pub stamp: u64,
    /// its timer, and what else a kind knows of it
    pub rest: Rest,
}

/// What [`Instance::put`] needs of an entry beside its key, its value and its stamp (`mr_saved` of `fastpath/abi.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rest {
    /// it is no entry, but a number that nobody has leased; its stamp says since when
    pub free: bool,
    place: u64,
    bound: u64,
    callback: u32,
    due: u64,
    order: u64,
}

impl Rest {
    fn of(piece: &abi::Saved) -> Self {
        Self {
            free: What::of(piece.what) == Some(What::Free),
            place: piece.place,
            bound: piece.bound,
            callback: piece.callback,
            due: piece.due,
            order: piece.order,
        }
    }

    /// Of an entry at this place that expires by its stamp, and of which nothing else is known.
    pub(crate) fn refreshed(place: u64) -> Self {
        Self {
            place,
            bound: u64::MAX,
            due: u64::MAX,
            ..Self::default()
        }
    }

    /// Its numbers, for another machine.
    pub(crate) fn numbers(&self) -> [u64; 5] {
        let callback = u64::from(self.callback);
        [self.place, self.bound, callback, self.due, self.order]
    }

    /// The reverse of [`Self::numbers`]; none where they cannot be.
    pub(crate) fn of_numbers(free: bool, numbers: [u64; 5]) -> Option<Self> {
        let [place, bound, callback, due, order] = numbers;
        Some(Self {
            free,
            place,
            bound,
            callback: u32::try_from(callback).ok()?,
            due,
            order,
        })
    }

    /// By this entries of one instance are ordered so that those whose timers are due at one moment fire in the order in which they would
    /// have fired there.
    #[must_use]
    pub fn turn(&self) -> (u64, u64) {
        (self.due, self.order)
    }
}

/// An entry at its place.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// which place of the object
    pub place: u64,
    /// its key
    pub key: &'a [u8],
    /// its value
    pub value: &'a [u8],
    /// when it was last refreshed, ns; 0 where entries do not expire
    pub stamp: u64,
    /// its timer, and what else a kind knows of it
    pub rest: Rest,
}

impl Placed<'_> {
    /// The same for good.
    #[must_use]
    pub fn kept(&self) -> Stamped {
        Stamped {
            key: self.key.to_vec(),
            value: self.value.to_vec(),
            stamp: self.stamp,
            rest: self.rest,
        }
    }
}

/// Entries of a page.
const PAGE: usize = 4096;

impl Module {
    /// What can be kept of an object.
    #[must_use]
    pub fn keeping(&self, index: usize) -> Keeping {
        let found = self.objects.get(index).zip(self.object_table().get(index));
        let Some((info, object)) = found else {
            return Keeping::Nothing;
        };
        if info.kind.holds_maps() {
            return Keeping::Never("its values are maps, which are made anew by each run");
        }
        if info.kind.holds_rules() {
            return Keeping::All;
        }
        match (object.save.is_some() && object.load.is_some(), object.next) {
            (true, _) if info.kind.is_global() && info.value_bytes == 0 => Keeping::Nothing,
            (true, _) => Keeping::All,
            // Settings, and records that the host has had.
            (false, _)
                if info.kind.is_global() || info.records || info.kind.holds == Holds::Routes =>
            {
                Keeping::Nothing
            }
            (false, Some(_)) if object.set.is_some() => Keeping::All,
            (false, _) => Keeping::Never("this kind of object does not list what it holds"),
        }
    }
}

impl Instance {
    /// All content of an object. Expired entries that have not been reclaimed are among it.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when there is no such object or it cannot be kept.
    pub fn save(&mut self, index: usize, now: u64) -> Result<Content, ModuleError> {
        let (info, object) = self.object(index, "save")?;
        if let Keeping::Never(why) = self.module.keeping(index) {
            return Err(control(info, "save", why.into()));
        }
        if info.kind.holds_rules() {
            return Ok(self.save_rules(index));
        }
        let mut saving = Saving {
            content: Content::default(),
            form: form(info),
        };
        let Some(save) = object.save else {
            self.save_entries(index, now, &mut saving.content)?;
            return Ok(saving.content);
        };
        // SAFETY: a control function of this module on its own created instance; `push` gets back exactly the context
        // given here, which outlives the call.
        let result = unsafe {
            save(
                self.memory.as_ptr(),
                push,
                (&raw mut saving).cast::<c_void>(),
            )
        };
        match result {
            0 => Ok(saving.content),
            e => Err(control(info, "save", errno(e))),
        }
    }

    /// Entries of an object whose keys are wanted, in an order of its own. Expired ones that have not been reclaimed are among
    /// them.
    ///
    /// # Errors
    /// As [`Self::save`], and where the kind of object does not list its entries with their times.
    pub fn select(
        &mut self,
        index: usize,
        wanted: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Vec<Stamped>, ModuleError> {
        let (info, object) = self.object(index, "select")?;
        let Some(save) = object.save else {
            return Err(control(info, "select", "it lists no entries".into()));
        };
        let mut selecting = Selecting {
            found: Vec::new(),
            form: form(info),
            wanted,
        };
        // SAFETY: a control function of this module on its own created instance; `choose` gets back exactly the context
        // given here, which outlives the call.
        let result = unsafe {
            save(
                self.memory.as_ptr(),
                choose,
                (&raw mut selecting).cast::<c_void>(),
            )
        };
        match result {
            0 => Ok(selecting.found),
            e => Err(control(info, "select", errno(e))),
        }
    }

    /// Places of an object.
    #[must_use]
    pub fn capacity(&self, index: usize) -> u64 {
        let found = self.module.objects.get(index);
        found.map_or(0, |info| info.capacity)
    }

    /// Entries of an object by their places, a few at a time while packets come: what is at these places, and what was put anywhere
    /// since the last call. False: more was put than is remembered, and who wants all has to begin again; none: its entries have no
    /// places that stay.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when there is no such object.
    pub fn list(
        &mut self,
        index: usize,
        places: Range<u64>,
        each: &mut dyn FnMut(Placed<'_>),
    ) -> Result<Option<bool>, ModuleError> {
        let (info, object) = self.object(index, "list")?;
        let Some(list) = object.list else {
            return Ok(None);
        };
        let mut listing = Listing {
            form: form(info),
            each,
        };
        // SAFETY: a control function of this module on its own created instance; `tell` gets back exactly the context
        // given here, which outlives the call.
        let result = unsafe {
            list(
                self.memory.as_ptr(),
                places.start,
                places.end,
                tell,
                (&raw mut listing).cast::<c_void>(),
            )
        };
        match result {
            0 => Ok(Some(true)),
            1 => Ok(Some(false)),
            e => Err(control(info, "list", errno(e))),
        }
    }

    /// Puts in an entry of another instance beside what there is, with its stamp and its timer; `now` decides what has expired, ns. False: no
    /// place is free, and nothing was changed. An entry under the same key gives way.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when there is no such object, or no object of its kind has such an entry.
    pub fn put(&mut self, index: usize, entry: &Stamped, now: u64) -> Result<bool, ModuleError> {
        let (info, object) = self.object(index, "put")?;
        let Some(put) = object.put else {
            // Elements, which are all there.
            let set = self.set(index, &entry.key, &entry.value, now);
            return set.map(|()| true);
        };
        let lengths = (info.key_bytes, info.value_bytes);
        if !entry.rest.free && (entry.key.len(), entry.value.len()) != lengths {
            let what = "its key or its value has another length".to_owned();
            return Err(control(info, "put", what));
        }
        let rest = entry.rest;
        let saved = abi::Saved {
            what: if rest.free { What::Free } else { What::Entry } as u32,
            callback: rest.callback,
            place: rest.place,
            stamp: entry.stamp.min(abi::LATEST),
            bound: rest.bound,
            due: rest.due,
            order: rest.order,
            length: if rest.free {
                1
            } else {
                entry.value.len() as u64
            },
            key: entry.key.as_ptr(),
            value: entry.value.as_ptr(),
        };
        for again in [false, true] {
            // SAFETY: a control function of this module on its own created instance; an entry's key and value have the lengths that
            // the object declares, and of a free number neither is read; both outlive the call.
            let result = unsafe { put(self.memory.as_ptr(), &raw const saved, now) };
            match result.saturating_neg() {
                0 => return Ok(true),
                libc::E2BIG => return Ok(false),
                libc::EEXIST if !again && !rest.free => {
                    self.remove(index, &entry.key, now)?;
                }
                _ => {
                    let info = self.object(index, "put")?.0;
                    return Err(control(info, "put", refused(result, info)));
                }
            }
        }
        Ok(false)
    }

    fn save_entries(
        &mut self,
        index: usize,
        now: u64,
        content: &mut Content,
    ) -> Result<(), ModuleError> {
        content.push(&Piece::new(What::Head));
        let (mut cursor, mut place) = (0, 0);
        loop {
            let page = self.page(index, &mut cursor, PAGE, now)?;
            for (key, value) in &page {
                content.push(&Piece {
                    place,
                    length: value.len() as u64,
                    key,
                    value,
                    ..Piece::new(What::Entry)
                });
                place += 1;
            }
            if page.len() < PAGE {
                content.push(&Piece::new(What::End));
                return Ok(());
            }
        }
    }

    /// Makes an object hold a content and nothing else; says how many entries that are. Entries without a stamp get
    /// `now`; all stamps are earlier by `shift`, ns. The content may come from anywhere.
    ///
    /// # Errors
    /// [`ModuleError::Control`] when the content is malformed or is not one that this object can hold. The instance is
    /// of no use then.
    pub fn load(
        &mut self,
        index: usize,
        content: &Content,
        now: u64,
        shift: u64,
    ) -> Result<u64, ModuleError> {
        let (info, object) = self.object(index, "load")?;
        if let Keeping::Never(why) = self.module.keeping(index) {
            return Err(control(info, "load", why.into()));
        }
        if info.kind.holds_rules() {
            return self.load_rules(index, content);
        }
        let (info, form, load) = (info.clone(), form(info), object.load);
        let removes = object.remove.is_some();
        let failed = |what: String| control(&info, "load", what);
        if load.is_none() && removes {
            self.clear(index, now)?;
        }
        // What a piece lacks is zeros, so that what is read of it is there.
        let (no_key, no_value) = (
            vec![0; form.key_bytes.max(1)],
            vec![0; form.value_bytes.max(1)],
        );
        let mut entries = 0;
        for piece in content.pieces(form) {
            let piece = piece.map_err(|e| failed(e.to_string()))?.earlier(shift);
            entries += u64::from(piece.what == What::Entry);
            let Some(load) = load else {
                if piece.what == What::Entry {
                    self.set(index, piece.key, piece.value, now)
                        .map_err(|e| failed(e.to_string()))?;
                }
                continue;
            };
            let or = |bytes: &[u8], no: &[u8]| match bytes.is_empty() {
                true => no.as_ptr(),
                false => bytes.as_ptr(),
            };
            let saved = abi::Saved {
                what: piece.what as u32,
                callback: piece.callback,
                place: piece.place,
                stamp: piece.stamp.min(abi::LATEST),
                bound: piece.bound,
                due: piece.due,
                order: piece.order,
                length: piece.length,
                key: or(piece.key, &no_key),
                value: or(piece.value, &no_value),
            };
            // SAFETY: a control function of this module on its own created instance, with a head first and an end last
            // or never used again; an entry's key and value have the lengths that the object declares, and bytes the
            // length that the piece says (`Content::pieces`); all outlive the call.
            match unsafe { load(self.memory.as_ptr(), &raw const saved, now) } {
                0 => {}
                e => return Err(failed(refused(e, &info))),
            }
        }
        Ok(entries)
    }

    /// Removes all entries.
    fn clear(&mut self, index: usize, now: u64) -> Result<(), ModuleError> {
        for (key, _) in self.entries(index, usize::MAX, now)? {
            self.remove(index, &key, now)?;
        }
        Ok(())
    }
}

/// What chosen entries are collected in.
struct Selecting<'a> {
    found: Vec<Stamped>,
    form: Form,
    wanted: &'a mut dyn FnMut(&[u8]) -> bool,
}

/// Receives one piece from the module, and keeps it if its key is wanted.
unsafe extern "C" fn choose(context: *mut c_void, piece: *const abi::Saved) -> c_int {
    // SAFETY: `select` passes the address of its `Selecting` and keeps it alive; the module hands a piece that is valid
    // during this call.
    let (selecting, piece) = unsafe { (&mut *context.cast::<Selecting<'_>>(), &*piece) };
    if What::of(piece.what) != Some(What::Entry) || piece.key.is_null() || piece.value.is_null() {
        return 0;
    }
    // SAFETY: abi.h promises `key_bytes` at a key that is there, and `length` bytes at a value.
    let (key, value) = unsafe {
        (
            std::slice::from_raw_parts(piece.key, selecting.form.key_bytes),
            std::slice::from_raw_parts(piece.value, piece.length as usize),
        )
    };
    if (selecting.wanted)(key) {
        selecting.found.push(Stamped {
            key: key.to_vec(),
            value: value.to_vec(),
            stamp: piece.stamp,
            rest: Rest::of(piece),
        });
    }
    0
}

/// To whom entries are told.
struct Listing<'a> {
    form: Form,
    each: &'a mut dyn FnMut(Placed<'_>),
}

/// Receives one entry from the module.
unsafe extern "C" fn tell(context: *mut c_void, piece: *const abi::Saved) -> c_int {
    // SAFETY: `list` passes the address of its `Listing` and keeps it alive; the module hands a piece that is valid during
    // this call.
    let (listing, piece) = unsafe { (&mut *context.cast::<Listing<'_>>(), &*piece) };
    let rest = Rest::of(piece);
    let (key, value) = match rest.free {
        true => (&[][..], &[][..]),
        false if piece.key.is_null() || piece.value.is_null() => return 0,
        // SAFETY: abi.h promises `key_bytes` at a key that is there, and `length` bytes at the value of an entry.
        false => unsafe {
            (
                std::slice::from_raw_parts(piece.key, listing.form.key_bytes),
                std::slice::from_raw_parts(piece.value, piece.length as usize),
            )
        },
    };
    (listing.each)(Placed {
        place: piece.place,
        key,
        value,
        stamp: piece.stamp,
        rest,
    });
    0
}

/// What a content is collected in.
struct Saving {
    content: Content,
    form: Form,
}

/// Receives one piece from the module.
unsafe extern "C" fn push(context: *mut c_void, piece: *const abi::Saved) -> c_int {
    // SAFETY: `save` passes the address of its `Saving` and keeps it alive; the module hands a piece that is valid
    // during this call.
    let (saving, piece) = unsafe { (&mut *context.cast::<Saving>(), &*piece) };
    let Some(what) = What::of(piece.what) else {
        return -libc::EINVAL;
    };
    let entry = what == What::Entry;
    let of = |at: *const u8, length: usize| match at.is_null() || length == 0 {
        true => &[][..],
        // SAFETY: abi.h promises `key_bytes` at a key that is there, and `length` bytes at a value.
        false => unsafe { std::slice::from_raw_parts(at, length) },
    };
    let key = of(piece.key, if entry { saving.form.key_bytes } else { 0 });
    let value = match what {
        What::Entry | What::Bytes => of(piece.value, piece.length as usize),
        What::Head | What::Free | What::End => &[],
    };
    saving.content.push(&Piece {
        what,
        callback: piece.callback,
        place: piece.place,
        stamp: piece.stamp,
        bound: piece.bound,
        due: piece.due,
        order: piece.order,
        length: piece.length,
        key,
        value,
    });
    0
}

pub(super) fn form(info: &ObjectInfo) -> Form {
    Form {
        key_bytes: info.key_bytes,
        value_bytes: info.value_bytes,
    }
}

/// Why an object does not take a piece.
fn refused(result: i32, info: &ObjectInfo) -> String {
    match result.saturating_neg() {
        libc::E2BIG => format!(
            "it has {} places, and the content names others",
            info.capacity
        ),
        libc::EEXIST => "the content has a place or a key twice".into(),
        libc::EDOM => "it was declared with another first number, window or size".into(),
        libc::EINVAL => format!("a {} cannot hold the content", info.kind.name),
        _ => errno(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::Config;
    use crate::testing;

    #[test]
    fn an_object_takes_up_what_another_one_was() {
        let mut first = Instance::create(testing::fixture(), &Config::default()).unwrap();
        let key = |n: u32| n.to_ne_bytes();
        first.set(0, &key(2), &7_u64.to_ne_bytes(), 0).unwrap();
        first.set(0, &key(3), &u64::MAX.to_ne_bytes(), 0).unwrap();
        let content = first.save(0, 0).unwrap();
        let mut second = Instance::create(testing::fixture(), &Config::default()).unwrap();
        second.set(0, &key(1), &9_u64.to_ne_bytes(), 0).unwrap();
        second.load(0, &content, 0, 0).unwrap();
        let all = |i: &mut Instance| i.entries(0, 10, 0).unwrap();
        assert_eq!(all(&mut second), all(&mut first));
        assert_eq!(second.save(0, 0).unwrap(), content);
    }

    #[test]
    fn what_an_object_cannot_hold_is_refused() {
        let mut instance = Instance::create(testing::fixture(), &Config::default()).unwrap();
        let mut load = |pieces: &[Piece<'_>]| {
            let mut content = Content::default();
            for piece in pieces {
                content.push(piece);
            }
            instance.load(0, &content, 0, 0).map_err(|e| e.to_string())
        };
        let (head, end) = (Piece::new(What::Head), Piece::new(What::End));
        let entry = |place| Piece {
            place,
            length: 8,
            value: &[1; 8],
            key: &[0; 4],
            ..Piece::new(What::Entry)
        };
        let far = Piece {
            key: &[9, 0, 0, 0],
            ..entry(1)
        };
        assert_eq!(load(&[head, entry(3), end]), Ok(1));
        for wrong in [
            &[][..],
            &[head],
            &[head, far, end],
            &[head, entry(1), entry(1), end],
        ] {
            let text = load(wrong).unwrap_err();
            assert!(text.starts_with("load on object `counts`: "), "{text}");
        }
        assert!(instance.load(7, &Content::default(), 0, 0).is_err());
        assert_eq!(instance.module().keeping(0), Keeping::All);
        assert_eq!(instance.module().keeping(1), Keeping::Nothing);
    }
}
