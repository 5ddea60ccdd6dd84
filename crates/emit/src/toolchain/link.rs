//! Linking a module with the words of clang's driver, but not by it.
//!
//! A driver that is to compile and to link starts clang once more to compile: a quarter of what a small module takes is
//! the second start of a program whose libraries have so much to relocate.

use std::path::Path;
use std::process::Command;

/// What stands for the object and the module where the driver is asked for its words.
const INPUT: &str = "millrace-input.o";
const OUTPUT: &str = "millrace-output.so";

/// What the driver is asked: to say how it would link a shared object, without doing it.
pub(super) const QUESTION: &[&str] = &["-shared", "-###", "-o", OUTPUT, "-Wl,millrace-input.o"];

/// The linker and its arguments, in which names stand for object and module.
#[derive(Clone, Debug)]
pub struct Link(Vec<String>);

impl Link {
    /// Reads the driver's answer: each argument in quotes, with a backslash before what a shell would take. None where it
    /// is another.
    pub(super) fn of(said: &str) -> Option<Self> {
        let line = said.lines().rfind(|line| line.contains(INPUT))?;
        let mut words = Vec::new();
        let mut letters = line.trim().chars();
        while letters.next()? == '"' {
            let mut word = String::new();
            loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => word.push(letters.next()?),
                    letter => word.push(letter),
                }
            }
            words.push(word);
            if letters.next().is_none() {
                let named = |name: &str| words.iter().filter(|w| *w == name).count() == 1;
                return (named(INPUT) && named(OUTPUT)).then_some(Self(words));
            }
        }
        None
    }

    /// Whether the files that it names are there.
    pub(super) fn stands(&self) -> bool {
        let named = self.0.iter().filter(|word| word.starts_with('/'));
        named.map(Path::new).all(Path::exists)
    }

    /// The command that makes `module` of `object` and libraries.
    pub(super) fn command<'a>(
        &self,
        object: &Path,
        libraries: impl Iterator<Item = &'a str>,
        module: &Path,
    ) -> Command {
        let mut words = self.0.iter();
        let mut command = Command::new(words.next().map_or("ld", String::as_str));
        let mut libraries = Some(libraries);
        for word in words {
            match word.as_str() {
                INPUT => command
                    .arg(object)
                    .args(libraries.take().into_iter().flatten()),
                OUTPUT => command.arg(module),
                other => command.arg(other),
            };
        }
        command
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_drivers_words_are_read_back() {
        let said = "clang version 19.1.7\nTarget: x86_64\n \"/opt/a \\\"b\\\\c/ld\" \"-shared\" \"-o\" \"millrace-output.so\" \
                    \"millrace-input.o\" \"-lc\"\n";
        let link = Link::of(said).unwrap();
        let libraries = ["-l:x.so.1"].into_iter();
        let command = link.command(Path::new("m.o"), libraries, Path::new("m.so"));
        assert_eq!(command.get_program(), "/opt/a \"b\\c/ld");
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["-shared", "-o", "m.so", "m.o", "-l:x.so.1", "-lc"]);
        assert!(!link.stands());
    }

    #[test]
    fn other_answers_are_none() {
        for said in [
            "",
            "millrace-input.o",
            " \"ld\" \"millrace-input.o\"",
            " \"ld\" \"millrace-output.so\" \"millrace-input.o",
            " \"ld\" \"millrace-output.so\" millrace-input.o",
            " \"ld\" \"millrace-output.so\" \"millrace-input.o\" \"millrace-input.o\"",
        ] {
            assert!(Link::of(said).is_none(), "{said}");
        }
    }
}
