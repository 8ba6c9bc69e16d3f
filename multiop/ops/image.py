# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Ops on images without their prefix, as in `keras.ops.image`: `ops.image.resize(x, (32, 32))`."""

import typing as _typing

from multiop.frontends.images import (
    op_image_affine_transform as affine_transform, op_image_crop as crop_images,
    op_image_elastic_transform as elastic_transform, op_image_extract_patches as extract_patches,
    op_image_extract_patches_3d as extract_patches_3d, op_image_gaussian_blur as gaussian_blur,
    op_image_hsv_to_rgb as hsv_to_rgb, op_image_map_coordinates as map_coordinates, op_image_pad as pad_images,
    op_image_perspective_transform as perspective_transform, op_image_reconstruct_patches as reconstruct_patches,
    op_image_resize as resize, op_image_rgb_to_grayscale as rgb_to_grayscale, op_image_rgb_to_hsv as rgb_to_hsv,
    op_image_scale_and_translate as scale_and_translate, op_image_sobel_edges as sobel_edges, op_image_ssim as ssim,
)

__all__ = [
    "affine_transform", "crop_images", "elastic_transform", "extract_patches", "extract_patches_3d", "gaussian_blur",
    "hsv_to_rgb", "map_coordinates", "pad_images", "perspective_transform", "reconstruct_patches", "resize",
    "rgb_to_grayscale", "rgb_to_hsv", "scale_and_translate", "sobel_edges", "ssim",
]

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
