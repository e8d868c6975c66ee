//! Mechanism: the arm, the heads and the rotation.
//!
//! Rotation follows from absolute time: the spindle never stops, only its initial phase is random.
//! Head switch and seek overlap (the longer one counts); a write that had to move settles longer.
//! Left out: the firmware's freedom to start reading in the middle of the wanted sectors.
//!
//! Source: Ruemmler and Wilkes (1994); Worthington, Ganger, Patt (1994).

use iolab_model::Ns;

use super::geometry::{Geometry, Place};
use super::seek::SeekCurve;

/// Arm, heads, platters.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// The platters.
    pub geometry: Geometry,
    /// Travel times.
    pub curve: SeekCurve,
    /// Time to read with another head of the same cylinder.
    pub head_switch: u64,
    /// Least time to get on the wanted track, also when the arm is there already.
    pub resettle: u64,
    /// The same before a write.
    pub resettle_write: u64,
    /// Added to every movement before a write.
    pub write_settle: u64,
    /// Angle at time zero.
    pub phase: u64,
    /// Cylinder of the arm.
    pub cylinder: u32,
    /// The head in use.
    pub head: u32,
}

/// A transfer under way: the next sector and when it starts to pass under the head.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Next media sector.
    pub sector: u64,
    /// Time at which it starts to pass.
    pub time: Ns,
    /// Place on the media; `left` is 0 when the track is used up and the next one not yet reached.
    pub place: Place,
    /// Writes settle after each change of track.
    pub is_write: bool,
}

impl Mechanism {
    /// Angle of the platters, as time since the index mark passed.
    #[inline]
    pub const fn rotation(&self, at: Ns) -> u64 {
        (at.0 + self.phase) % self.geometry.period().0
    }

    /// Time until the heads stand on a track.
    #[inline]
    pub fn travel(&self, cylinder: u32, head: u32, is_write: bool) -> u64 {
        let distance = self.cylinder.abs_diff(cylinder);
        let switch = if head == self.head { 0 } else { self.head_switch };
        let time = self.curve.time(distance).max(switch);
        if !is_write {
            return time.max(self.resettle);
        }
        let has_moved = distance > 0 || head != self.head;
        time.max(self.resettle_write) + if has_moved { self.write_settle } else { 0 }
    }

    /// Wait for an angle, from an instant on.
    #[inline]
    pub const fn wait(&self, from: Ns, angle: u64) -> u64 {
        let period = self.geometry.period().0;
        (angle + period - self.rotation(from)) % period
    }

    /// The heads are now on this track.
    pub const fn settle_on(&mut self, place: &Place) {
        self.cylinder = place.cylinder;
        self.head = place.head;
    }

    /// Transfers up to (not including) `end`; afterwards `pass.time` is the instant at which the
    /// last sector has passed.
    pub fn run_to(&self, pass: &mut Pass, end: u64) {
        while pass.sector < end {
            self.enter_track(pass);
            let sectors = (end - pass.sector).min(u64::from(pass.place.left)) as u32;
            self.step(pass, sectors);
        }
    }

    /// Transfers what passes completely until `now`, at most to `limit`.
    pub fn run_until(&self, pass: &mut Pass, now: Ns, limit: u64) {
        while pass.sector < limit && pass.time < now {
            self.enter_track(pass);
            let place = &pass.place;
            let gone = now.since(pass.time).0 + self.geometry.angle_of(place);
            let slots = gone * u64::from(place.track_sectors) / self.geometry.period().0;
            let passed = slots.saturating_sub(u64::from(place.slot));
            let most = (limit - pass.sector).min(u64::from(place.left));
            if now <= pass.time || passed == 0 {
                return;
            }
            self.step(pass, passed.min(most) as u32);
            if passed < most {
                return;
            }
        }
    }

    /// Transfers sectors of one track.
    fn step(&self, pass: &mut Pass, sectors: u32) {
        let place = &mut pass.place;
        let from = self.geometry.angle(place.track_sectors, place.slot);
        let to = self.geometry.angle(place.track_sectors, place.slot + sectors);
        pass.time += Ns(to - from);
        pass.sector += u64::from(sectors);
        place.left -= sectors;
        place.slot = (place.slot + sectors) % place.track_sectors;
    }

    /// Goes to the next track when this one is used up.
    fn enter_track(&self, pass: &mut Pass) {
        if pass.place.left > 0 {
            return;
        }
        let next = self.geometry.place(pass.sector);
        let old = pass.place;
        let distance = old.cylinder.abs_diff(next.cylinder);
        let switch = if old.head == next.head { 0 } else { self.head_switch };
        let settle = if pass.is_write { self.write_settle } else { 0 };
        let ready = pass.time + Ns(self.curve.time(distance).max(switch) + settle);
        pass.time = ready + Ns(self.wait(ready, self.geometry.angle_of(&next)));
        pass.place = next;
    }
}
