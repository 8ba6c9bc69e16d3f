"""PyTorch's named models, with random weights and in small sizes where a library lets one choose."""

from __future__ import annotations

import contextlib

import torch

with contextlib.suppress(RuntimeError):  # torchvision imports without its own kernels, which no model here uses
    _library = torch.library.Library("torchvision", "DEF")
    _library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import timm
import torchvision.models as tv
import transformers

TEXT = {"vocab_size": 50, "max_position_embeddings": 16}
SIZES = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
VISION = {"img_size": 32, "patch_size": 8, "num_classes": 10}


class Recurrent(torch.nn.Module):
    """Layers of one kind, and a head on the last step."""

    def __init__(self, kind):
        super().__init__()
        self.layers, self.head = kind(8, 16, 2, batch_first=True, bidirectional=True), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


class Encoder(torch.nn.Module):
    """Both halves of T5 on one sentence."""

    def __init__(self):
        super().__init__()
        config = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4}
        self.t5 = transformers.T5Model(transformers.T5Config(**config, use_cache=False))

    def forward(self, ids):
        return self.t5(input_ids=ids, decoder_input_ids=ids).last_hidden_state


def vgg():
    """VGG-11 with a narrow head: that of the library has 120 million parameters."""
    model = tv.VGG(tv.vgg.make_layers(tv.vgg.cfgs["A"]), 10, init_weights=False)
    for layer, sizes in {0: (512 * 7 * 7, 64), 3: (64, 64), 6: (64, 10)}.items():
        model.classifier[layer] = torch.nn.Linear(*sizes)
    return model


def image(size):
    return (torch.randn(2, 3, size, size),)


def ids():
    return (torch.randint(1, 50, (2, 8)),)


MODELS = {
    "ResNet-18": lambda: (tv.resnet18(), image(64)),
    "MobileNetV3 small": lambda: (tv.mobilenet_v3_small(), image(64)),
    "EfficientNet-B0": lambda: (tv.efficientnet_b0(), image(64)),
    "DenseNet-121": lambda: (tv.densenet121(), image(64)),
    "ConvNeXt tiny": lambda: (tv.convnext_tiny(), image(64)),
    "ViT": lambda: (tv.VisionTransformer(32, 8, 3, 4, 64, 128), image(32)),
    "Swin": lambda: (tv.SwinTransformer([4, 4], 32, [2, 2, 2, 2], [2, 4, 8, 16], [4, 4]), image(64)),
    "ShuffleNetV2": lambda: (tv.shufflenet_v2_x0_5(), image(64)),
    "VGG-11": lambda: (vgg(), image(32)),
    "LR-ASPP": lambda: (
        tv.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None),
        image(64),
    ),
    "Mixer": lambda: (timm.models.mlp_mixer.MlpMixer(**VISION, num_blocks=3, embed_dim=32), image(32)),
    "DeiT": lambda: (
        timm.models.deit.VisionTransformerDistilled(**VISION, embed_dim=32, depth=3, num_heads=4),
        image(32),
    ),
    "RegNetY": lambda: (timm.create_model("regnety_002", pretrained=False), image(64)),
    "BERT": lambda: (transformers.BertModel(transformers.BertConfig(**TEXT, **SIZES)), ids()),
    "GPT-2": lambda: (
        transformers.GPT2Model(
            transformers.GPT2Config(vocab_size=50, n_embd=32, n_layer=4, n_head=4, n_positions=16, use_cache=False)
        ),
        ids(),
    ),
    "Llama": lambda: (
        transformers.LlamaModel(transformers.LlamaConfig(**TEXT, **SIZES, num_key_value_heads=2, use_cache=False)),
        ids(),
    ),
    "T5": lambda: (Encoder(), ids()),
    "LSTM": lambda: (Recurrent(torch.nn.LSTM), (torch.randn(2, 6, 8),)),
    "GRU": lambda: (Recurrent(torch.nn.GRU), (torch.randn(2, 6, 8),)),
}


# models that compute in float32 whatever their dtype is: norms and angles, and the slope of PyTorch's hardsigmoid
SINGLE = ("Llama", "T5", "MobileNetV3 small", "LR-ASPP")


def made(name, dtype):
    """Return a model without dropout, whose layers all matter, and its inputs."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    dtype = getattr(torch, dtype)
    model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    for module in model.modules():
        for rate in ("p", "drop_prob", "dropout", "dropout_prob", "attention_dropout", "dropout_rate"):
            if isinstance(getattr(module, rate, None), float):
                setattr(module, rate, 0.0)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if (
                parameter.ndim <= 1 or "layer_scale" in path
            ):  # some begin as zeros, or so small that nothing comes through
                is_scale = parameter.ndim != 1 or path.endswith(("weight", "gamma", "scale"))
                parameter.uniform_(0.7, 1.3) if is_scale else parameter.normal_(0, 0.1)
            elif not parameter.any():  # a head that begins as zeros
                parameter.normal_(0, 0.1)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # statistics of the inputs: with others, nothing is left after many layers
    with torch.no_grad():
        model.train()(*inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model.eval(), inputs
