"""Cues that move pixels: nothing is lost or invented, and labels go where their pixels go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuebench.cues import (
    chain,
    diamond_shuffle,
    interior_patches,
    patch_rotation,
    patch_shuffle,
    quilting,
    rotation,
    voronoi_shuffle,
)
from cuebench.cues._moves import cuts
from cuebench.cues.blocks import min_cut
from cuebench.cues.voronoi_shuffle import nearest_site
from cuebench.errors import UserError

sizes = st.tuples(st.integers(1, 40), st.integers(1, 40))
seeds = st.integers(0, 2**32)
few = settings(max_examples=40, deadline=None)


def numbered(height, width):
    """An image whose colours are its labels, and the labels."""
    labels = np.arange(height * width, dtype=np.int32).reshape(height, width)
    return np.stack([labels % 256, labels // 256, labels * 0 + 7], axis=-1).astype(np.uint8), labels


def shown(image):
    return image[..., 0].astype(np.int32) + 256 * image[..., 1].astype(np.int32)


@few
@given(sizes, st.integers(1, 12), seeds, st.sampled_from([patch_shuffle, diamond_shuffle, patch_rotation]))
def test_shuffles_keep_every_pixel_once(size, grid, seed, cue):
    image, labels = numbered(*size)
    out, moved = cue(image, grid=grid, mask=labels, rng=seed)
    assert np.array_equal(np.sort(moved, axis=None), labels.ravel())
    assert np.array_equal(shown(out), moved)


@few
@given(sizes, st.integers(1, 40), seeds)
def test_voronoi_shows_input_pixels_and_moves_labels_alike(size, sites, seed):
    image, labels = numbered(*size)
    out, moved = voronoi_shuffle(image, sites=sites, mask=labels, rng=seed)
    assert np.array_equal(shown(out), moved)
    assert moved.min() >= 0
    assert moved.max() < labels.size


@few
@given(sizes, st.integers(1, 12), seeds)
def test_voronoi_cells_shift_as_a_whole_without_wrapping(size, sites, seed):
    height, width = size
    _, labels = numbered(height, width)
    moved = voronoi_shuffle(np.zeros(size), sites=sites, mask=labels, rng=seed)[1]
    down = moved // width - np.arange(height)[:, None]
    right = moved % width - np.arange(width)[None, :]
    assert len(np.unique(np.stack([down, right], -1).reshape(-1, 2), axis=0)) <= min(sites, labels.size)


@few
@given(sizes, st.integers(1, 20), seeds)
def test_nearest_site_agrees_with_a_k_d_tree(size, count, seed):
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(seed)
    ys, xs = rng.integers(size[0], size=count), rng.integers(size[1], size=count)
    cell = nearest_site(*size, ys, xs)
    pixels = np.indices(size).reshape(2, -1).T
    distance, _ = cKDTree(np.stack([ys, xs], 1)).query(pixels)
    chosen = np.hypot(pixels[:, 0] - ys[cell.ravel()], pixels[:, 1] - xs[cell.ravel()])
    assert np.allclose(distance, chosen)


def test_voronoi_packs_large_images_without_overflow():
    cell = nearest_site(3, 70_000, np.array([0, 2]), np.array([0, 69_999]))
    assert cell[0, 0] == 0
    assert cell[0, -1] == 1


def test_voronoi_defaults_to_the_published_32_sites():
    from cuebench.cues.voronoi_shuffle import CUE, SITES

    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert SITES == 32
    assert CUE.levels["sites"] == (8, 16, 32, 64, 128)
    assert np.array_equal(voronoi_shuffle(image, rng=1), voronoi_shuffle(image, sites=32, rng=1))


def test_patch_shuffle_moves_whole_patches():
    _, labels = numbered(224, 224)
    moved = patch_shuffle(np.zeros((224, 224)), mask=labels, rng=3)[1]
    patches = moved.reshape(8, 28, 8, 28).swapaxes(1, 2).reshape(64, 28, 28)
    origins = patches[:, 0, 0]
    assert np.array_equal(patches - origins[:, None, None], np.broadcast_to(labels[:28, :28], patches.shape))
    assert sorted(origins) == [y * 28 * 224 + x * 28 for y in range(8) for x in range(8)]


def test_diamonds_move_as_wholes_over_the_border_and_have_the_area_of_a_patch():
    height = width = 240
    _, labels = numbered(height, width)
    moved = diamond_shuffle(np.zeros((height, width)), mask=labels, rng=0)[1]
    down = (moved // width - np.arange(height)[:, None]) % height
    right = (moved % width - np.arange(width)[None, :]) % width
    _, counts = np.unique(np.stack([down, right], -1).reshape(-1, 2), axis=0, return_counts=True)
    area = 240 * 240 / 72
    assert counts.min() >= 0.9 * area
    assert area == pytest.approx(30 * 30, rel=0.15)


def test_patches_of_unequal_size_still_shuffle_everywhere():
    _, labels = numbered(227, 229)
    moved = patch_shuffle(np.zeros((227, 229)), mask=labels, rng=0)[1]
    assert (moved != labels).mean() > 0.9


def test_cuts_cover_the_axis_with_bands_that_differ_by_at_most_one():
    for length in (1, 7, 224, 227):
        for parts in (1, 2, 8, 300):
            bands = np.diff(cuts(length, parts))
            assert bands.sum() == length
            assert bands.max() - bands.min() <= 1


def test_patch_rotation_turns_a_square_patch():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert np.array_equal(patch_rotation(image, grid=1, angles=(90,)), np.rot90(image))
    halves = patch_rotation(image, grid=2, angles=(180,))
    assert np.array_equal(halves[:2, :2], np.rot90(image[:2, :2], 2))


@few
@given(st.integers(2, 40), st.integers(2, 40), st.sampled_from([2, 4, 8]), st.sampled_from([0, 0.25, 0.5]), seeds)
def test_interior_patches_take_only_the_inside(height, width, grid, overlap, seed):
    image, labels = numbered(height, width)
    mask = np.zeros((height, width), dtype=bool)
    mask[: -(-height * 3 // 4), : -(-width * 3 // 4)] = True
    mask[0, 0] = False
    try:
        out, moved = interior_patches(image, mask=mask, grid=grid, overlap=overlap, labels=labels, rng=seed)
    except UserError as error:
        assert "fits" in error.message  # noqa: PT017
        return
    assert np.array_equal(shown(out), moved)
    assert mask.ravel()[moved].all()


def test_interior_patches_that_do_not_fit_name_the_grid_that_does():
    mask = np.zeros((224, 224), dtype=bool)
    mask[100:140, 100:140] = True
    with pytest.raises(UserError, match="no patch of 70×70") as caught:
        interior_patches(np.zeros((224, 224)), mask=mask, grid=4)
    assert "grid=8" in caught.value.hint
    assert interior_patches(np.zeros((224, 224)), mask=mask, grid=8).shape == (224, 224)


def test_interior_patches_without_overlap_are_the_published_hard_tiles():
    _, labels = numbered(32, 32)
    mask = np.ones((32, 32), dtype=bool)
    moved = interior_patches(np.zeros((32, 32)), mask=mask, grid=4, overlap=0, labels=labels)[1]
    tiles = moved.reshape(4, 8, 4, 8).swapaxes(1, 2)
    assert np.array_equal(tiles - tiles[..., :1, :1], np.broadcast_to(labels[:8, :8], tiles.shape))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 16), st.sampled_from([0, 0.2, 0.5]), seeds)
def test_quilting_shows_input_pixels_and_moves_labels_alike(height, width, block, overlap, seed):
    image, labels = numbered(height, width)
    out, moved = quilting(image, block=block, overlap=overlap, mask=labels, rng=seed)
    assert np.array_equal(shown(out), moved)


def test_quilting_joins_blocks_better_than_chance():
    y, x = np.mgrid[:96, :96]
    image = (0.5 + 0.5 * np.sin(x / 3.0) * np.cos(y / 4.0)).astype(np.float32)
    hard = interior_patches(image, mask=np.ones(image.shape, bool), grid=4, overlap=0)
    quilted = quilting(image, block=24)

    def roughness(picture):
        return np.abs(np.diff(picture, 2, axis=1)).mean()

    assert roughness(quilted) < 0.8 * roughness(hard)
    assert not np.array_equal(quilted, image)


def test_quilting_stays_inside_an_object():
    image, labels = numbered(40, 40)
    inside = np.zeros((40, 40), dtype=bool)
    inside[5:35, 8:30] = True
    moved = quilting(image, block=10, inside=inside, mask=labels)[1]
    assert inside.ravel()[moved].all()
    with pytest.raises(UserError, match="fits inside"):
        quilting(image, block=25, inside=inside)


def test_min_cut_finds_the_cheapest_path():
    rng = np.random.default_rng(0)
    error = rng.random((5, 4))
    path = min_cut(error)
    paths = [p for p in np.ndindex(4, 4, 4, 4, 4) if np.abs(np.diff(p)).max() <= 1]
    cheapest = min(error[range(5), p].sum() for p in paths)
    assert np.abs(np.diff(path)).max() <= 1
    assert error[range(5), path].sum() == pytest.approx(cheapest)


def test_chain_moves_labels_through_the_steps_that_move_pixels():
    image, labels = numbered(20, 20)
    out, moved = chain(image, cues=["patch_shuffle", "patch_rotation", "voronoi_shuffle"], mask=labels, rng=4)
    assert np.array_equal(shown(out), moved)


def test_rotation_turns_labels_with_the_image():
    image, labels = numbered(15, 15)
    out, moved = rotation(image, angle=270, mask=labels, keep_colour=True)
    assert np.array_equal(shown(out), moved)
    assert np.array_equal(moved, np.rot90(labels, 3))
    tilted = rotation(image, angle=30, mask=labels % 3 + 1, border_label=255)[1]
    assert set(np.unique(tilted)) == {1, 2, 3, 255}


def test_masks_of_a_batch():
    images = np.stack([numbered(9, 9)[0]] * 3)
    labels = numbered(9, 9)[1]
    out, moved = voronoi_shuffle(images, mask=labels, rng=[1, 2, 3], sites=5)
    assert moved.shape == (3, 9, 9)
    for one, mask in zip(out, moved):
        assert np.array_equal(shown(one), mask)
