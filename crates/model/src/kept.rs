//! Models that are kept: what was followed once is read the next time.
//!
//! A name is a hash of all that a model depends on: the program, limits that are no time, and the version of what makes models. Only
//! what is [`Model::settled`] is kept, so that a machine that was busy once is not remembered for it. A file begins with a hash
//! of the rest: one that was cut short, or has rotted, is made anew. Who may write the folder may say what models are, so it must be
//! the user's own, as that of compiled modules is.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use millrace_check::Checked;
use millrace_object::program::Program;
use sha2::{Digest, Sha256};

use crate::model::Model;
use crate::{Limits, weaken};

/// Bytes of a hash.
const HASH: usize = 32;

/// A hash of what is written.
struct Hashed(Sha256);

impl std::fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// Where the model of a program is kept in a folder; nowhere if these limits ask for what is not kept, or a rule is switched off.
fn place(folder: &Path, program: &Program, limits: &Limits) -> Option<PathBuf> {
    let Limits {
        paths,
        steps,
        expressions,
        time: _,
        question: _,
        solver,
        cut,
        dump,
        budget: _,
    } = limits;
    if solver.is_some() || dump.is_some() || weaken::any() {
        return None;
    }
    let mut hash = Hashed(Sha256::new());
    let version = env!("MILLRACE_MODELLER");
    // Every field of the program is in its debugging text, also those that a later version adds.
    write!(
        hash,
        "{version} {paths} {steps} {expressions} {cut:?} {program:?}"
    )
    .ok()?;
    let name = hash
        .0
        .finalize()
        .iter()
        .fold(String::new(), |name, byte| format!("{name}{byte:02x}"));
    Some(folder.join(format!("{name}.model")))
}

/// As [`crate::model()`], from the folder, if there is one, where it is kept there; what is made and may be kept is put there. A
/// folder that cannot be read or written costs time, and nothing else. Whether it was kept is said beside it.
///
/// `checked` is what [`millrace_check::check`] says of the program with every rule in force.
#[must_use]
pub fn model(
    program: &Program,
    checked: &Checked,
    limits: &Limits,
    folder: Option<&Path>,
) -> (Model, bool) {
    let place = folder.and_then(|f| place(f, program, limits));
    if let Some(kept) = place.as_deref().and_then(read) {
        return (kept, true);
    }
    let model = crate::model(program, checked, limits);
    if let Some(place) = place.filter(|_| model.settled) {
        // The next one makes it again.
        let _ = write(&model, &place);
    }
    (model, false)
}

/// Whether [`model`] would read it there.
#[must_use]
pub fn is_there(program: &Program, limits: &Limits, folder: &Path) -> bool {
    place(folder, program, limits).is_some_and(|place| place.is_file())
}

/// The model in a file; none where there is none, or no whole one.
fn read(place: &Path) -> Option<Model> {
    let bytes = std::fs::read(place).ok()?;
    let (hash, model) = bytes.split_at_checked(HASH)?;
    if Sha256::digest(model).as_slice() != hash {
        return None;
    }
    postcard::from_bytes(model).ok()
}

/// Writes a model beside its place, and moves it there: others see all of it or nothing.
fn write(model: &Model, place: &Path) -> std::io::Result<()> {
    let bytes = postcard::to_stdvec(model).map_err(std::io::Error::other)?;
    let folder = place.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&Sha256::digest(&bytes))?;
    file.write_all(&bytes)?;
    file.persist(place)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_short_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("deeper/empty.model");
        let empty = Model {
            name: "empty".to_owned(),
            entries: Vec::new(),
            objects: Vec::new(),
            settled: true,
        };
        write(&empty, &place).unwrap();
        assert_eq!(read(&place).unwrap().name, "empty");
        let bytes = std::fs::read(&place).unwrap();
        for end in 0..bytes.len() {
            std::fs::write(&place, &bytes[..end]).unwrap();
            assert!(read(&place).is_none(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut rotten = bytes.clone();
            rotten[at] ^= 1;
            std::fs::write(&place, &rotten).unwrap();
            assert!(read(&place).is_none(), "{at}");
        }
    }
}
