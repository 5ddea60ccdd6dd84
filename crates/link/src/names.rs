//! Objects, parameters, drop reasons and ports of the linked program.

use millrace_object::program::{Nesting, ObjectId, Program};
use millrace_topology::{End, Topology};

use crate::Element;

/// What an element's object, parameter or drop reason is called, as the account of a chain calls it.
fn named(element: &Element<'_>, name: &str) -> String {
    format!("{}:{name}", element.name)
}

/// Names of the chain's ports: those given, or numbers. A name is not given twice.
pub(crate) fn ports(topology: &Topology, given: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for at in 0..topology.entries().len() {
        let name = given.get(at).filter(|name| !names.contains(name)).cloned();
        names.push(name.unwrap_or_else(|| at.to_string()));
    }
    names
}

/// Adds an element's objects, parameters and drop reasons.
pub(crate) fn add(out: &mut Program, element: &Element<'_>) {
    let first = out.objects.len();
    let moved = |id: ObjectId| ObjectId(first + id.0);
    for object in &element.program.objects {
        let mut object = object.clone();
        object.name = named(element, &object.name);
        // Its function is copied later.
        object.expiry = None;
        object.nesting = object.nesting.map(|nesting| match nesting {
            Nesting::Holds { shape, values } => Nesting::Holds {
                shape: moved(shape),
                values: values
                    .into_iter()
                    .map(|(key, map)| (key, moved(map)))
                    .collect(),
            },
            Nesting::Shape(holder) => Nesting::Shape(moved(holder)),
        });
        out.objects.push(object);
    }
    for param in &element.program.params {
        let mut param = param.clone();
        param.name = named(element, &param.name);
        param.object = moved(param.object);
        out.params.push(param);
    }
    let reasons = element.program.reasons.iter();
    out.reasons.extend(reasons.map(|r| named(element, r)));
}

/// Which of the chain's ports an end is.
pub(crate) fn outside(end: End) -> Option<u32> {
    match end {
        End::Out(port) => Some(port),
        End::Element { .. } => None,
    }
}
