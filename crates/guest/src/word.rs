//! How a chain names a guest: `guest:COMMAND`, or with options `guest,limit=5,memory=256:COMMAND`.

use std::path::PathBuf;
use std::time::Duration;

use crate::command::Spec;
use crate::error::GuestError;

/// A guest as a chain names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    options: &'a str,
    command: &'a str,
}

/// What options there are, for messages.
const OPTIONS: &str = "jit, memory=MIB, limit=SECONDS, slot=NUMBER, dir=FOLDER, read=PATH and write=PATH, separated by commas";

impl<'a> Word<'a> {
    /// None when the word names no guest.
    #[must_use]
    pub fn of(word: &'a str) -> Option<Self> {
        let rest = word.strip_prefix("guest")?;
        let (options, command) = rest.split_once(':')?;
        let options = match options.strip_prefix(',') {
            Some(options) => options,
            None if options.is_empty() => "",
            None => return None,
        };
        Some(Self { options, command })
    }

    /// The program, its arguments, and what the options ask for.
    ///
    /// # Errors
    /// [`GuestError::Command`] when an option does not exist or cannot be read, or there is no such program.
    pub fn spec(&self) -> Result<Spec, GuestError> {
        let mut spec = Spec::parse(self.command)?;
        for option in self.options.split(',').filter(|o| !o.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let done = match name {
                "jit" if value.is_empty() => Some(spec.jit = true),
                "memory" => value
                    .parse()
                    .ok()
                    .filter(|mib| (16..=4096).contains(mib))
                    .map(|mib: usize| spec.budget = mib << 20),
                "limit" => value
                    .parse()
                    .ok()
                    .and_then(|s| Duration::try_from_secs_f64(s).ok())
                    .filter(|limit| !limit.is_zero())
                    .map(|limit| spec.limit = limit),
                "slot" => value.parse().ok().map(|slot| spec.slot = Some(slot)),
                "dir" => std::fs::canonicalize(value)
                    .ok()
                    .filter(|d| d.is_dir())
                    .map(|d| spec.directory = d),
                "read" if value.starts_with('/') => Some(spec.read.push(PathBuf::from(value))),
                "write" if value.starts_with('/') => Some(spec.write.push(PathBuf::from(value))),
                _ => None,
            };
            done.ok_or_else(|| GuestError::Command {
                command: self.command.to_owned(),
                what: format!("option `{option}`: there are {OPTIONS}; memory is 16 to 4096 MiB, paths are absolute"),
            })?;
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_stand_before_the_command() {
        for other in ["guest", "guests:ls", "firewall", "guest/x.c", "guest,jit"] {
            assert_eq!(Word::of(other), None, "{other}");
        }
        let spec = Word::of("guest,jit,memory=64,limit=0.5,slot=7,read=/srv:sh -c :")
            .unwrap()
            .spec()
            .unwrap();
        assert!(spec.jit);
        assert_eq!((spec.budget, spec.slot), (64 << 20, Some(7)));
        assert_eq!(spec.limit, Duration::from_millis(500));
        assert_eq!(spec.arguments, ["sh", "-c", ":"]);
        for wrong in [
            "guest,memory=1:sh",
            "guest,limit=0:sh",
            "guest,jit=1:sh",
            "guest,fast:sh",
            "guest,read=x:sh",
        ] {
            let error = Word::of(wrong).unwrap().spec().unwrap_err().to_string();
            assert!(error.contains("option"), "{error}");
        }
    }
}
