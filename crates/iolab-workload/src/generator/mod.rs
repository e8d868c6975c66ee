//! In which order the records of a file are touched: one file per pattern, one row in the list.

mod api;
mod permutation;
mod reverse;
mod same;
mod sequential;
mod shuffled;
mod stride;
mod tickets;
mod uniform;

pub use api::{Generator, Records};
pub use permutation::Mt19937_64;

api::generators! {
    Sequential(sequential::Sequential),
    Reverse(reverse::Reverse),
    Stride(stride::Stride),
    Permutation(permutation::Permutation),
    Shuffled(shuffled::Shuffled),
    Uniform(uniform::Uniform),
    Same(same::Same),
    Tickets(crate::draws::Tickets),
}
