# made by tools/op_list.py: run `nox -s generate`, do not edit
"""Ops on images without their prefix, as in `keras.ops.image`: `ops.image.resize(x, (32, 32))`."""

import typing as _typing

from multiop._loading.suggestions import (
    public_names as _public_names,
)
from multiop.frontends import (
    images as _images,
)

rgb_to_grayscale = _images.op_image_rgb_to_grayscale
rgb_to_hsv = _images.op_image_rgb_to_hsv
hsv_to_rgb = _images.op_image_hsv_to_rgb
crop_images = _images.op_image_crop
pad_images = _images.op_image_pad
resize = _images.op_image_resize
affine_transform = _images.op_image_affine_transform
perspective_transform = _images.op_image_perspective_transform
map_coordinates = _images.op_image_map_coordinates
extract_patches = _images.op_image_extract_patches
extract_patches_3d = _images.op_image_extract_patches_3d
reconstruct_patches = _images.op_image_reconstruct_patches
gaussian_blur = _images.op_image_gaussian_blur
sobel_edges = _images.op_image_sobel_edges
ssim = _images.op_image_ssim
elastic_transform = _images.op_image_elastic_transform
scale_and_translate = _images.op_image_scale_and_translate


if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    __all__ = _public_names(__name__)

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
