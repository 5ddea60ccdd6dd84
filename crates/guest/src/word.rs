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
const OPTIONS: &str = "jit, memory=MIB, limit=SECONDS, restart=TIMES, slot=NUMBER, dir=FOLDER, read=PATH and write=PATH, separated by commas";

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

    /// The word that names the program, as it was written.
    #[must_use]
    pub fn program(&self) -> Option<String> {
        let words = shell_words::split(self.command).ok()?;
        words.into_iter().next()
    }

    /// The program, its arguments, and what the options ask for.
    ///
    /// # Errors
    /// [`GuestError::Command`] when an option does not exist or cannot be read, or there is no such program.
    pub fn spec(&self) -> Result<Spec, GuestError> {
        let mut spec = Spec::parse(self.command)?;
        for option in self.options.split(',').filter(|o| !o.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            option_of(&mut spec, self.command, name, value)?;
        }
        Ok(spec)
    }
}

/// Sets an option of docs/guests.md by its name; the value of a switch is empty. `command` is for the message.
///
/// # Errors
/// [`GuestError::Command`] when it does not exist, or its value cannot be read.
pub fn option_of(
    spec: &mut Spec,
    command: &str,
    name: &str,
    value: &str,
) -> Result<(), GuestError> {
    set(spec, name, value).ok_or_else(|| {
        let option = match value {
            "" => name.to_owned(),
            value => format!("{name}={value}"),
        };
        GuestError::Command {
            command: command.to_owned(),
            what: format!("option `{option}`: there are {OPTIONS}; memory is 16 to 4096 MiB, paths are absolute"),
        }
    })
}

/// Sets an option; none when there is no such option, or its value is not one.
fn set(spec: &mut Spec, name: &str, value: &str) -> Option<()> {
    match name {
        "jit" if value.is_empty() => spec.jit = true,
        "memory" => {
            let mib: usize = value.parse().ok()?;
            spec.budget = (16..=4096).contains(&mib).then_some(mib << 20)?;
        }
        "limit" => {
            let limit = Duration::try_from_secs_f64(value.parse().ok()?).ok()?;
            spec.limit = (!limit.is_zero()).then_some(limit)?;
        }
        "restart" => spec.restarts = value.parse().ok()?,
        "slot" => spec.slot = Some(value.parse().ok()?),
        "dir" => {
            let folder = std::fs::canonicalize(value).ok()?;
            spec.directory = folder.is_dir().then_some(folder)?;
        }
        "read" if value.starts_with('/') => spec.read.push(PathBuf::from(value)),
        "write" if value.starts_with('/') => spec.write.push(PathBuf::from(value)),
        _ => return None,
    }
    Some(())
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
