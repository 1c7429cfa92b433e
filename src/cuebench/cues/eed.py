"""Edge-enhancing diffusion: textures melt away, edges stay; the shape cue of cue decomposition."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.cues._eed.accuracy import ON_DEVICE, cycles_for
from cuebench.cues._eed.backends import BACKENDS, DEVICES, backend_for
from cuebench.cues._eed.plan import Plan, cycle_plan, explicit_plan
from cuebench.cues._eed.scheme import Boundary, Diffusivity, Report, Scheme
from cuebench.cues.base import CueInfo, Rounding, as_batch, check_rounding, is_tensor
from cuebench.cues.parameters import check_choice, check_number, check_whole
from cuebench.errors import UserError

STEPS_CLASSIFICATION, STEPS_SEGMENTATION = 16384, 5792
"""Published numbers of explicit steps: 224×224 images, and 512×512 and larger ones."""

CUE = CueInfo(
    kind="shape",
    reference="Heinert et al., Shape Bias and Robustness Evaluation via Cue Decomposition",
    quick={"steps": 4},
    levels={"steps": (STEPS_SEGMENTATION, STEPS_CLASSIFICATION)},
    device=ON_DEVICE,
)


def eed(
    image: Any,
    *,
    steps: int = STEPS_CLASSIFICATION,
    time: float | None = None,
    accuracy: float | None = None,
    cycles: int | None = None,
    kernel_size: int = 5,
    sigma: float = math.sqrt(5),
    contrast: float = 1 / 15,
    alpha: float = 0.49,
    tau: float = 0.2,
    orientation_smoothing: bool = True,
    diffusivity: Diffusivity = "published",
    boundary: Boundary = "published",
    stretch: bool = True,
    rounding: Rounding = "round",
    snapshots: Sequence[int] | None = None,
    backend: str = "auto",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    r"""Smooth an image along its edges and hardly across them, until texture is gone and shape is left.

    The image, with values in [0, 255], is the start of

    .. math:: \partial_t u = \operatorname{div}(D \nabla u), \qquad
              D = g(J), \quad J = K_\sigma * \sum_c \nabla (K_\sigma * u_c)\, \nabla (K_\sigma * u_c)^\top

    with a truncated Gaussian :math:`K_\sigma` and reflecting borders; all channels share one tensor. The diffusivity
    acts on the eigenvalues of :math:`J`,

    .. math:: g(\mu) = 1 / \sqrt{1 + (\mu/\kappa)^2},

    so diffusion is fast along edges (:math:`\mu_1 \approx 0`) and nearly stops across them. In space, the 3×3 stencil
    of Weickert, Welk and Wickert [2]_ (:math:`\beta = 0`) on the cells between the pixels; in time, explicit steps
    :math:`u \leftarrow u + 2\tau L(u)\,u`, or cycles of linear steps that reach the same time sooner.

    Parameters
    ----------
    image : array
        H×W, H×W×C or N×H×W×C with 1 or 3 channels; uint8 or float in [0, 1]. Or a tensor N×H×W×C: the diffusion then
        runs on the tensor's device, and nothing is copied to the host.
    steps : int
        Explicit steps of the published scheme: the more, the coarser the texture that is gone. 16,384 was published for
        classification (224×224), 5,792 for segmentation.
    time : float, optional
        Diffusion time instead of ``steps``; ``steps`` of length :math:`2\tau` are the time :math:`2\tau\cdot` steps.
    accuracy : float, optional
        Use the fast scheme, so fine that the result is at least this close to the explicit scheme's, in dB (PSNR over
        all pixels before the stretch). Calibrated on photographs; see Notes. Default: the explicit scheme itself.
    cycles : int, optional
        Use the fast scheme with this number of cycles (tensors) instead of an accuracy.
    kernel_size : int
        Taps of the Gaussian; odd, from 1 (no smoothing) to 29.
    sigma : float
        Standard deviation of the Gaussian, in pixels.
    contrast : float
        κ, on the squared-gradient scale of [0, 255] images: the smaller, the fainter the edges that survive.
    alpha : float
        Free parameter of the stencil, 0 to 0.5; 0.5 has no stencil weight left for the chequerboard.
    tau : float
        Step size of the explicit scheme; a step advances time by :math:`2\tau`. At most 0.25.
    orientation_smoothing : bool
        Smooth the structure tensor too, as the authors do. False: standard EED.
    diffusivity : {"published", "paper"}
        ``"published"``: as above, which made the published data. ``"paper"``: as printed,
        :math:`1/\sqrt{1 + \mu/\kappa^2}`.
    boundary : {"published", "mirror"}
        How the tensor is continued beyond the border. ``"published"`` repeats its edge values, which lets the mean
        drift by up to half a grey level; ``"mirror"`` reflects it with the right signs, which conserves the mean.
    stretch : bool
        Stretch the result's range (over all channels) to the full range, as the authors do.
    rounding : {"round", "truncate"}
        Of a uint8 image: to the nearest grey level, or to the next lower one. The authors' files are truncated (by
        torchvision's ``ToPILImage``), so that half of their values are one grey level below the nearest one.
    snapshots : sequence of int, optional
        Rising numbers of steps (at most ``steps``): return the states there, stacked along a new first axis.
    backend : {"auto", "cpu", "cuda", "numba", "torch", "triton"}
        ``"auto"``: Triton where there is a CUDA device, otherwise Numba, otherwise PyTorch.
    workers : int, optional
        Threads of the Numba backend, one image each; default: one for each core. Results do not depend on it.
    progress : callable, optional
        Called as ``progress(done, total)`` now and then.

    Returns
    -------
    array
        Same shape and dtype as ``image``; with ``snapshots`` one axis more.

    Raises
    ------
    UserError
        Unusable image or parameter, with the value received and what is accepted.

    See Also
    --------
    texture_residual : what this takes away.

    Notes
    -----
    States may leave [0, 255] on the way (−15 … 270 was seen); they are clipped once, at the end.

    The fast scheme freezes the tensor for a cycle and runs fast semi-iterative (FSI) steps [3]_. Its accuracy against
    the explicit scheme is tabulated in ``cuebench.cues._eed.accuracy``: a measurement on photographs with the default
    parameters, not a bound. With other parameters, on noise or on line art it may be some dB lower.

    References
    ----------
    .. [1] E. Heinert et al., "Shape Bias and Robustness Evaluation via Cue Decomposition for Image Classification and
       Segmentation".
    .. [2] J. Weickert, M. Welk, M. Wickert, "L²-stable nonstandard finite differences for anisotropic diffusion",
       SSVM 2013.
    .. [3] D. Hafner et al., "FSI schemes: fast semi-iterative solvers for PDEs and optimisation methods", GCPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.zeros((32, 32), np.uint8)
    >>> image[8:24, 8:24] = 200
    >>> eed(image, steps=50).shape
    (32, 32)
    """
    scheme = Scheme(kernel_size, sigma, contrast, alpha, orientation_smoothing, diffusivity, boundary)
    times = _times(steps, time, tau, snapshots, scheme)
    plan = _plan(times, tau, accuracy, cycles, scheme)
    check_choice("backend", backend, ("auto", *DEVICES, *BACKENDS))
    threads = check_whole("workers", workers) if workers is not None else os.cpu_count() or 1
    check_rounding(rounding, image)
    if is_tensor(image):
        if snapshots is not None:
            raise UserError("a tensor with snapshots", "accepted with a tensor: no snapshots; else pass an array")
        return _of_tensor(image, scheme, plan, stretch, rounding, backend, threads, progress)
    batch, layout = as_batch(image)
    planes = np.ascontiguousarray(np.moveaxis(batch, -1, 1), dtype=np.float32) * np.float32(255)
    report = _reporter(progress, plan.work * len(planes))
    states = backend_for(backend, planes, scheme).diffuse(planes, scheme, plan, report, threads)
    results = [layout.restore(np.moveaxis(_finish(state, stretch), 1, -1), rounding) for state in states]
    return results[0] if snapshots is None else np.stack(results)


def _times(steps: int, time: float | None, tau: float, snapshots: Sequence[int] | None, scheme: Scheme) -> list[float]:
    """Diffusion times of the results, rising."""
    check_whole("steps", steps)
    check_number("tau", tau, above=0, high=scheme.longest_step / 2)
    end = 2 * tau * steps if time is None else check_number("time", time, above=0)
    if snapshots is None:
        return [end]
    times = [2 * tau * check_whole("snapshots", step) for step in snapshots]
    if not times or any(a >= b for a, b in pairwise(times)) or times[-1] > end * (1 + 1e-9):
        raise UserError(f"snapshots is {snapshots!r}", f"accepted: rising numbers of steps up to {end / (2 * tau):g}")
    return times


def _plan(times: list[float], tau: float, accuracy: float | None, cycles: int | None, scheme: Scheme) -> Plan:
    if accuracy is not None and cycles is not None:
        raise UserError(f"accuracy is {accuracy!r} and cycles is {cycles!r}", "accepted: one of the two")
    if cycles is not None:
        return cycle_plan(times, check_whole("cycles", cycles), scheme.longest_step)
    if accuracy is None:
        return explicit_plan(times, 2 * tau)
    wanted = [cycles_for(check_number("accuracy", accuracy, above=0), time) for time in times]
    plans = [cycle_plan(times, w.number, scheme.longest_step, max(w.horizon, times[-1])) for w in wanted if w]
    # Every snapshot must be as accurate as the last result: the plan with the most work is good enough for all.
    finest = max(plans, key=lambda plan: plan.work, default=None)
    explicit = explicit_plan(times, 2 * tau)
    return explicit if finest is None or None in wanted or finest.work >= explicit.work else finest


def _reporter(progress: Callable[[int, int], None] | None, total: int) -> Report:
    """Count the work of all threads; the caller's function is called by one of them at a time."""
    lock, done = threading.Lock(), 0

    def report(work: int) -> None:
        nonlocal done
        if progress is None:
            return
        with lock:
            done += work
            progress(done, total)

    return report


def _of_tensor(
    image: Any,
    scheme: Scheme,
    plan: Plan,
    stretch: bool,
    rounding: Rounding,
    backend: str,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> Any:
    import torch

    from cuebench.cues._eed.backends import advance_tensor
    from cuebench.cues.on_device import on_tensor, precise

    def kernel(images: Any) -> Any:
        planes = images.movedim(-1, 1).to(torch.float32).contiguous() * 255
        report = _reporter(progress, plan.work * len(planes))
        state = advance_tensor(backend, planes, scheme, plan, report, threads).clamp_(0, 255)
        low, high = state.amin((1, 2, 3), keepdim=True), state.amax((1, 2, 3), keepdim=True)
        state = state.to(precise(state.device))
        if stretch:
            flat = high <= low
            state = torch.where(flat, state, state - low) / torch.where(flat, 255, high - low).to(state.dtype)
        else:
            state = state / 255
        return state.movedim(1, -1)

    return on_tensor(kernel, image, None, rounding=rounding)


def _finish(state: Array, stretch: bool) -> Array:
    """Clip a batch N×C×H×W to [0, 255], stretch each image to the full range, and scale to [0, 1]."""
    state = np.clip(state, 0, 255).astype(np.float64)
    if stretch:
        low, high = state.min((1, 2, 3), keepdims=True), state.max((1, 2, 3), keepdims=True)
        flat = high <= low
        # One division: the brightest value is 1 exactly, not an ulp below it.
        return np.where(flat, state, state - low) / np.where(flat, 255, high - low)
    return state / 255
