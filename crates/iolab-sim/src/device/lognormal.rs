//! Times that vary: a lognormal distribution of given mean and coefficient of variation.

use iolab_model::Ns;
use iolab_model::seed::Stream;

/// Draws from a lognormal distribution of given mean and coefficient of variation.
#[derive(Clone, Debug)]
pub(super) struct Lognormal {
    /// Logarithm of the median of a distribution of mean 1.
    location: f64,
    spread: f64,
    random: Stream,
    spare: Option<f64>,
}

impl Lognormal {
    /// Of this coefficient of variation; 0 is no variation at all.
    pub(super) fn new(variation: f64, random: Stream) -> Self {
        let variance = libm::log1p(variation * variation);
        Self { location: -0.5 * variance, spread: variance.sqrt(), random, spare: None }
    }

    /// A standard normal number: Marsaglia's polar method (1964).
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.random.unit() - 1.0;
            let y = 2.0 * self.random.unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// A time of this mean.
    pub(super) fn draw(&mut self, mean: Ns) -> Ns {
        if self.spread == 0.0 {
            return mean;
        }
        let factor = libm::exp(self.location + self.spread * self.normal());
        Ns((mean.0 as f64 * factor).round() as u64)
    }
}
