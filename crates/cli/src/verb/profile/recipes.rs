//! Recipes that are made: what they gain, before they are told and where `--try` asks for it.

use std::path::Path;

use millrace::{Function, Make};
use millrace_profile::{Change, Prefetch, Recipe, Report, Tried};

use super::Profile;
use super::runs::Runs;
use crate::failure::Failure;
use crate::function;

/// Recipes that are measured before they are told.
const FORESEEN: usize = 4;
/// In so many turns: what is foreseen has to lie nearer to the middle than the turns of `--try` are apart.
const TURNS: usize = 11;

/// A function as recipes change it.
pub struct Changed<'a> {
    /// what was asked for
    pub profile: &'a Profile,
    /// how the function is made
    pub make: &'a Make,
    /// what there is
    pub base: &'a Function,
    /// the sources that it was made of
    pub folder: &'a Path,
}

impl Changed<'_> {
    /// What a packet takes with the first recipes: conflicts that are counted do not tell what a recipe costs itself,
    /// nor what workers then wait for. Gives the functions that were made for it.
    pub fn foresee(&self, runs: &Runs<'_>, report: &mut Report) -> Vec<(Change, Function)> {
        let changes = |r: &&mut Recipe| r.change != Change::Source;
        let mut first: Vec<&mut Recipe> = (report.recipes.iter_mut().filter(changes))
            .take(FORESEEN)
            .collect();
        // What cannot be made is said where it is tried.
        let made: Vec<Option<Function>> = first.iter().map(|r| self.changed(r).ok()).collect();
        let functions: Vec<&Function> = made.iter().flatten().collect();
        if let Ok(gains) = runs.gains(self.base, &functions, TURNS) {
            let could = first
                .iter_mut()
                .zip(&made)
                .filter(|(_, made)| made.is_some());
            for ((recipe, _), gain) in could.zip(gains) {
                recipe.gain = gain.map_or(recipe.gain, |gain| gain.median);
            }
        }
        let changes: Vec<Change> = first.iter().map(|r| r.change.clone()).collect();
        report.sort();
        let made = changes.into_iter().zip(made);
        made.filter_map(|(change, made)| Some((change, made?)))
            .collect()
    }

    /// Measures recipes, in turns with what there is.
    pub fn attempt(
        &self,
        runs: &Runs<'_>,
        report: &mut Report,
        mut made: Vec<(Change, Function)>,
    ) -> Result<(), Failure> {
        let turns = usize::from(self.profile.turns);
        report.prefetch = Some(Prefetch {
            gain: runs.prefetch(self.base, turns)?.median,
            turns,
        });
        let mut ready: Vec<(&mut Recipe, Function)> = Vec::new();
        let changes = |r: &&mut Recipe| r.change != Change::Source;
        for recipe in report.recipes.iter_mut().filter(changes) {
            let known = made.iter().position(|(change, _)| *change == recipe.change);
            let changed = match known {
                Some(known) => Ok(made.swap_remove(known).1),
                None => self.changed(recipe),
            };
            match changed {
                Ok(changed) => ready.push((recipe, changed)),
                Err(failure) => {
                    recipe.tried = Some(Tried {
                        gain: None,
                        low: None,
                        high: None,
                        turns: 0,
                        refused: Some(failure.what),
                    });
                }
            }
        }
        let functions: Vec<&Function> = ready.iter().map(|(_, changed)| changed).collect();
        let gains = runs.gains(self.base, &functions, turns)?;
        for ((recipe, _), gain) in ready.iter_mut().zip(gains) {
            let gain = gain?;
            recipe.tried = Some(Tried {
                gain: Some(gain.median),
                low: Some(gain.low),
                high: Some(gain.high),
                turns,
                refused: None,
            });
        }
        Ok(())
    }

    /// The function as a recipe has it.
    fn changed(&self, recipe: &Recipe) -> Result<Function, Failure> {
        let profile = self.profile;
        let mut make = self.make.clone();
        // With another option the plan may find another strategy; that is what many options are for.
        let mut wanted = profile.strategy.0;
        match &recipe.change {
            Change::Option {
                object,
                option,
                value,
            } => make
                .settings
                .push((format!("{object}.{option}"), value.clone())),
            Change::Strategy(other) => wanted = Some(*other),
            Change::Edit { from, to } => {
                let copy = tempfile::tempdir().map_err(|e| {
                    Failure::wrong(format!("no folder for an edited source: {e}"))
                        .help("make room in the folder of temporary files")
                })?;
                let folders = (self.folder, copy.path());
                let nf = edited(folders, &own(&profile.nf), recipe, (from, to))?;
                let arranged = profile.arranged(&nf, &make, wanted)?;
                return function::load(&nf, &arranged.divided(&make));
            }
            Change::Source => {}
        }
        let arranged = profile.arranged(&profile.nf, &make, wanted)?;
        function::load(&profile.nf, &arranged.divided(&make))
    }
}

/// The file that a function's source has.
fn own(nf: &str) -> String {
    let word = Path::new(nf);
    let name = word.file_name().unwrap_or(word.as_os_str());
    let name = name.to_string_lossy();
    match name.ends_with(".c") {
        true => name.into_owned(),
        false => format!("{name}.c"),
    }
}

/// A copy of a function's folder in which one line has other words; gives its source.
fn edited(
    (folder, copy): (&Path, &Path),
    own: &str,
    recipe: &Recipe,
    (from, to): (&str, &str),
) -> Result<String, Failure> {
    let failed = |what: String| {
        Failure::wrong(what).help("change the line by hand, and profile the function again")
    };
    // That of a source that is named without one.
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let unread = |e: std::io::Error| failed(format!("{}: {e}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let source = entry.path();
        let is_source = source.extension().is_some_and(|e| e == "c" || e == "h");
        if is_source && source.is_file() {
            std::fs::copy(&source, copy.join(entry.file_name())).map_err(unread)?;
        }
    }
    let path = copy.join(&recipe.file);
    let text = std::fs::read_to_string(&path).map_err(unread)?;
    let at = (recipe.line as usize).wrapping_sub(1);
    let has = text.lines().nth(at).is_some_and(|line| line.contains(from));
    if !has {
        return Err(failed(format!(
            "{}:{}: there is no `{from}` in the line",
            recipe.file, recipe.line
        )));
    }
    let lines = text.lines().enumerate();
    let lines: Vec<String> = lines
        .map(|(index, line)| match index == at {
            true => line.replacen(from, to, 1),
            false => line.to_owned(),
        })
        .collect();
    std::fs::write(&path, lines.join("\n") + "\n").map_err(unread)?;
    Ok(copy.join(own).display().to_string())
}
