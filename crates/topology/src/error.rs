//! Reasons why elements cannot be connected so.

use std::fmt;

use crate::{End, MOST_ELEMENTS};

/// Why elements cannot be connected so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// there is no such element or port
    Unknown(End),
    /// a port that leads nowhere
    Unconnected(End),
    /// a port that would lead to two
    Twice(End),
    /// an element to which connections lead back
    Cycle(usize),
    /// an element that no packet can reach
    Apart(usize),
    /// an element that has not two ports
    NotTwo(usize),
    /// an order that does not name each element once
    Order,
    /// a chain that is not a line, where an order was given
    NotLine,
    /// too many elements, or none
    Count(usize),
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(end) => write!(f, "there is no {end}"),
            Self::Unconnected(end) => write!(f, "{end} is not connected"),
            Self::Twice(end) => write!(f, "{end} is connected twice"),
            Self::Cycle(element) => write!(f, "element {element} is part of a cycle"),
            Self::Apart(element) => write!(f, "no packet can reach element {element}"),
            Self::NotTwo(element) => write!(f, "element {element} has not two ports"),
            Self::Order => f.write_str("the order does not name each element once"),
            Self::NotLine => f.write_str("the chain is not a line"),
            Self::Count(0) => f.write_str("a chain has at least one element"),
            Self::Count(count) => {
                write!(f, "{count} elements; a chain has at most {MOST_ELEMENTS}")
            }
        }
    }
}

impl std::error::Error for TopologyError {}
