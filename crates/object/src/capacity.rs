//! Another capacity for a state object than its author declared.

use crate::program::Program;

/// Why a capacity cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// no object of that name
    #[error("there is no state object `{name}`; the program has: {known}")]
    Unknown {
        /// as asked for
        name: String,
        /// the objects there are
        known: String,
    },
    /// a kind without entries to count
    #[error("`{name}` is a {kind}, whose size is part of the program")]
    Fixed {
        /// the object
        name: String,
        /// its kind
        kind: &'static str,
    },
    /// the kind refuses it
    #[error("`{name}` cannot hold {capacity}: {reason}")]
    Refused {
        /// the object
        name: String,
        /// as asked for
        capacity: u64,
        /// the kind's words
        reason: String,
    },
}

impl Program {
    /// Gives the state object `name` room for `capacity` entries, whatever its author declared: the
    /// operator knows how many flows there are. To be called before `check`, which proves indices
    /// against the capacity.
    ///
    /// The name `*` is for maps whose authors left it open, which were given theirs when the program
    /// was loaded ([`crate::load_with`]), and changes nothing.
    ///
    /// # Errors
    /// [`CapacityError`]; the program is as before.
    pub fn set_capacity(&mut self, name: &str, capacity: u64) -> Result<(), CapacityError> {
        if name == "*" {
            return Ok(());
        }
        let Some(object) = self.objects.iter_mut().find(|o| o.name == name) else {
            let known: Vec<&str> = self.objects.iter().map(|o| o.name.as_str()).collect();
            return Err(CapacityError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            });
        };
        if object.initial.is_some() {
            return Err(CapacityError::Fixed {
                name: name.to_owned(),
                kind: object.kind.name,
            });
        }
        let mut changed = object.clone();
        changed.capacity = capacity;
        (object.kind.validate)(&changed).map_err(|reason| CapacityError::Refused {
            name: name.to_owned(),
            capacity,
            reason,
        })?;
        *object = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Dialect, StateObject};
    use crate::state::hash;

    fn program() -> Program {
        Program {
            name: "p".into(),
            dialect: Dialect::Xdp,
            functions: vec![],
            entries: vec![],
            objects: vec![StateObject::new("flows", &hash::KIND, 4, 8, 16)],
            ports: vec![],
            params: vec![],
            reasons: vec![],
            license: String::new(),
        }
    }

    #[test]
    fn a_sane_capacity_is_taken_and_an_absurd_one_changes_nothing() {
        let mut p = program();
        p.set_capacity("flows", 1 << 20).unwrap();
        assert_eq!(p.objects[0].capacity, 1 << 20);
        for absurd in [0, u64::MAX] {
            assert!(matches!(
                p.set_capacity("flows", absurd),
                Err(CapacityError::Refused { .. })
            ));
            assert_eq!(p.objects[0].capacity, 1 << 20);
        }
        let told = p.set_capacity("flow", 4).unwrap_err().to_string();
        assert!(told.contains("flows"), "{told}");
    }
}
