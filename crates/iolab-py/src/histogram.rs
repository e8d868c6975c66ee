//! Quantiles of stored histograms.

use iolab_model::Histogram;
use pyo3::prelude::*;

use crate::error::study_error;

/// Quantiles (0..=1) of a histogram in its JSON form, in nanoseconds; an empty one gives an empty
/// list.
#[pyfunction]
pub fn histogram_quantiles(
    py: Python<'_>,
    histogram_json: &str,
    quantiles: Vec<f64>,
) -> PyResult<Vec<f64>> {
    let histogram: Histogram =
        serde_json::from_str(histogram_json).map_err(|e| study_error(py, e))?;
    #[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^53 ns")]
    let value = |quantile: &f64| histogram.quantile(*quantile).map(|ns| ns as f64);
    Ok(quantiles.iter().filter_map(value).collect())
}
