//! The list of devices.

use std::collections::BTreeMap;

use iolab_model::Seed;

use crate::api::layer::Layer;
use crate::error::SimError;
use crate::profile::{Profile, Value};

/// Values that a device is made from.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Its parameters.
    pub profile: &'a Profile,
    /// Root of its randomness.
    pub seed: Seed,
    /// Its name in the stack, which decides its random stream.
    pub instance: &'a str,
}

macro_rules! devices {
    ( $( $(#[$meta:meta])* $Row:ident = $name:literal => $make:expr, )+ ) => {
        iolab_model::registry! {
            /// A kind of device.
            pub enum DeviceKind as "device kind" {
                $( $(#[$meta])* $Row = $name, )+
            }
        }

        impl DeviceKind {
            fn make(self, order: Order<'_>) -> Result<Box<dyn Layer>, SimError> {
                match self { $( Self::$Row => ($make)(order), )+ }
            }
        }
    };
}

devices! {
    /// The same time for everything.
    Fixed = "fixed" => |order: Order<'_>| {
        Ok(Box::new(super::fixed::Fixed::from_profile(order.profile)?) as Box<dyn Layer>)
    },
    /// Platters that turn and an arm that travels.
    Disk = "disk" => |order: Order<'_>| {
        let Order { profile, seed, instance } = order;
        Ok(Box::new(super::disk::Disk::from_profile(profile, seed, instance)?) as Box<dyn Layer>)
    },
    /// A controller's caches in front of the device that the profile names as `inner`.
    Controller = "controller" => |order: Order<'_>| {
        let below = inner(order)?;
        let controller = super::controller::Controller::from_profile(order.profile, below)?;
        Ok(Box::new(controller) as Box<dyn Layer>)
    },
    /// A virtual machine's disk around another device.
    Guest = "guest" => |order: Order<'_>| {
        let Order { profile, seed, instance } = order;
        let below = inner(order)?;
        Ok(Box::new(super::guest::Guest::from_profile(profile, below, seed, instance)?) as Box<_>)
    },
    /// A volume behind a network, with limits of rate that a burst may exceed for a while.
    Cloud = "cloud" => |order: Order<'_>| {
        let Order { profile, seed, instance } = order;
        Ok(Box::new(super::cloud::Cloud::from_profile(profile, seed, instance)?) as Box<_>)
    },
    /// A drive-managed shingled disk: a cache of tracks in front of bands, on the disk that the
    /// profile names as `inner`.
    Smr = "smr" => |order: Order<'_>| {
        let below = inner(order)?;
        Ok(Box::new(super::smr::Smr::from_profile(order.profile, below)?) as Box<_>)
    },
    /// A flash drive.
    Ssd = "ssd" => |order: Order<'_>| {
        let Order { profile, seed, instance } = order;
        Ok(Box::new(super::ssd::Ssd::from_profile(profile, seed, instance)?) as Box<_>)
    },
}

/// The device inside a wrapper, which is not of the wrapper's own kind.
fn inner(order: Order<'_>) -> Result<Box<dyn Layer>, SimError> {
    let Some(name) = &order.profile.inner else {
        return Err(SimError::Inconsistent {
            subject: format!("profile {}", order.profile.name),
            problem: "there is no device inside".to_owned(),
            remedy: "name the profile of one with `inner = ...`".to_owned(),
        });
    };
    let inside = Profile::built_in(name)?;
    if inside.kind == order.profile.kind {
        return Err(SimError::Inconsistent {
            subject: format!("profile {}", order.profile.name),
            problem: format!("`inner` = {name} is a {} inside another", inside.kind),
            remedy: "name a device of another kind".to_owned(),
        });
    }
    build(&inside, order.seed, &format!("{}.inner", order.instance))
}

/// A device as its profile describes it.
pub fn build(profile: &Profile, seed: Seed, instance: &str) -> Result<Box<dyn Layer>, SimError> {
    let kind: DeviceKind = profile.kind.parse().map_err(|_| SimError::UnknownName {
        kind: "device kind",
        name: profile.kind.clone(),
        known: DeviceKind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
    })?;
    kind.make(Order { profile, seed, instance })
}

/// Bytes that a device's tables take at most; those of mechanics are small.
pub fn memory_bytes(profile: &Profile) -> Result<u64, SimError> {
    const SMALL: u64 = 1 << 20;
    let own = if profile.kind == DeviceKind::Ssd.name() {
        super::ssd::Ssd::memory_bytes(profile)?
    } else {
        SMALL
    };
    match &profile.inner {
        Some(inner) => Ok(own + memory_bytes(&Profile::built_in(inner)?)?),
        None => Ok(own),
    }
}

/// The built-in profile of that name with some values replaced.
pub fn profile(name: &str, values: &BTreeMap<String, Value>) -> Result<Profile, SimError> {
    let mut profile = Profile::built_in(name)?;
    profile.override_with(values)?;
    Ok(profile)
}
