"""PyTorch's named models, with random weights and in small sizes where a library lets one choose."""

from __future__ import annotations

import contextlib
import inspect

import torch

with contextlib.suppress(RuntimeError):  # torchvision imports without its own kernels, which no model here uses
    _library = torch.library.Library("torchvision", "DEF")
    _library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import diffusers
import timm
import torch_geometric.nn as graphs
import torchvision.models as tv
import transformers

TEXT = {"vocab_size": 50, "max_position_embeddings": 16}
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
VISION = {"img_size": 32, "patch_size": 8, "num_classes": 10}
PICTURES = {"image_size": 32, "patch_size": 8}
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
SPECIAL = {f"{name}_token_id": number for number, name in enumerate(("pad", "bos", "eos", "cls", "sep"))}


class Recurrent(torch.nn.Module):
    """Layers of one kind, and a head on the last step."""

    def __init__(self, kind):
        super().__init__()
        self.layers, self.head = kind(8, 16, 2, batch_first=True, bidirectional=True), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.layers(x)[0][:, -1])


class Encoder(torch.nn.Module):
    """Both halves of a model of sequences, on one sentence."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, decoder_input_ids=ids).last_hidden_state


class Speech(torch.nn.Module):
    """Whisper, with the words so far."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, features, ids):
        return self.model(input_features=features, decoder_input_ids=ids).last_hidden_state


class Towers(torch.nn.Module):
    """CLIP's two embeddings, and how they match."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, pixels):
        y = self.model(input_ids=ids, pixel_values=pixels)
        return y.logits_per_image, y.text_embeds, y.image_embeds


class Masked(torch.nn.Module):
    """A masked autoencoder, whose mask is that of the noise."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixels, noise):
        return self.model(pixels, noise=noise).logits


class Graph(torch.nn.Module):
    """Two layers on the nodes of a graph, with an activation between them."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, edges):
        return self.second(torch.nn.functional.elu(self.first(x, edges)), edges)


def vgg():
    """A narrow VGG: that of the library has 120 million parameters in its head alone."""
    model = tv.VGG(tv.vgg.make_layers([16, "M", 32, "M", 64, 64, "M"]), 10, init_weights=False)
    for layer, sizes in {0: (64 * 7 * 7, 64), 3: (64, 64), 6: (64, 10)}.items():
        model.classifier[layer] = torch.nn.Linear(*sizes)
    return model


def regnet():
    blocks = tv.regnet.BlockParams.from_init_params(8, 24, 24.0, 2.5, 8, se_ratio=0.25)
    return tv.RegNet(blocks, 10, stem_width=16)


def image(size):
    return (torch.randn(2, 3, size, size),)


def ids():
    return (torch.randint(1, 50, (2, 8)),)


def pictured(make, size=32):
    """Return what makes a model of images, and its input."""
    return lambda: (make(), image(size))


def timmed(name, size=64, **options):
    """Return what makes a model of timm by its name, and its input."""
    return pictured(lambda: timm.create_model(name, pretrained=False, num_classes=10, **options), size)


def segmented(name):
    """Return what makes one of torchvision's models of segmentation, and its input."""
    make = getattr(tv.segmentation, name)
    return pictured(lambda: make(weights=None, weights_backbone=None, num_classes=5), 64)


def text(name, **options):
    """Return what makes a model of transformers that reads a sentence, and its input."""

    def make():
        config = getattr(transformers, f"{name}Config")(**TEXT | SIZES | {"use_cache": False} | options)
        return getattr(transformers, f"{name}Model")(config), ids()

    return make


def seen(name, size=32, kind="Model", **options):
    """Return what makes a model of transformers that looks at an image, and its input."""

    def make():
        config = getattr(transformers, f"{name}Config")(**options)
        return getattr(transformers, f"{name}{kind}")(config), image(size)

    return make


def graph(layer, **options):
    """Return what makes two layers of a graph, and nodes and edges."""
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 5, 1], [1, 2, 3, 4, 5, 0, 3, 5, 2, 4]])
    return lambda: (Graph(layer(8, 16, **options), layer(16, 4, **options)), (torch.randn(6, 8), edges))


def perceptron(*sizes):
    """Return the layer of a graph isomorphism network."""
    middle = torch.nn.Sequential(torch.nn.Linear(*sizes), torch.nn.ReLU(), torch.nn.Linear(sizes[1], sizes[1]))
    return graphs.GINConv(middle, train_eps=True)


def t5():
    config = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4}
    return Encoder(transformers.T5Model(transformers.T5Config(**config, use_cache=False))), ids()


HALVES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "use_cache": False,
}


def bart():
    config = transformers.BartConfig(**TEXT, **HALVES, bos_token_id=0, pad_token_id=0, eos_token_id=2)
    return Encoder(transformers.BartModel(config)), ids()


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=50,
        num_mel_bins=8,
        max_source_positions=12,
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        **HALVES,
    )
    return Speech(transformers.WhisperModel(config)), (torch.randn(2, 8, 24), *ids())


def wav2vec2():
    config = transformers.Wav2Vec2Config(
        **SIZES,
        conv_dim=(16, 16, 16),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        mask_time_prob=0.0,
        layerdrop=0.0,
    )
    return transformers.Wav2Vec2Model(config), (torch.randn(2, 400),)


def clip():
    config = transformers.CLIPConfig(
        text_config={**TEXT, **SIZES, "eos_token_id": 49}, vision_config={**PICTURES, **SIZES}, projection_dim=16
    )
    return Towers(transformers.CLIPModel(config)), (*ids(), *image(32))


def vit_mae():
    config = transformers.ViTMAEConfig(
        **PICTURES,
        **SIZES,
        decoder_hidden_size=16,
        decoder_num_hidden_layers=2,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
    )
    return Masked(transformers.ViTMAEForPreTraining(config)), (*image(32), torch.rand(2, 16))


class Diffusion(torch.nn.Module):
    """A model of noise, at some times and under some words."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        return self.model(*inputs, return_dict=False)[0]


class Video(torch.nn.Module):
    """The encoder of V-JEPA 2."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, frames):
        return self.model(frames, skip_predictor=True).last_hidden_state


def stable_diffusion():
    model = diffusers.SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=32,
        pooled_projection_dim=16,
        out_channels=4,
    )
    noise, words, pooled = torch.randn(2, 4, 8, 8), torch.randn(2, 5, 32), torch.randn(2, 16)
    return Diffusion(model), (noise, words, pooled, torch.tensor([3.0, 7.0]))


def sana():
    model = diffusers.SanaTransformer2DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=2,
        num_cross_attention_heads=2,
        cross_attention_head_dim=8,
        cross_attention_dim=16,
        caption_channels=8,
        sample_size=8,
        patch_size=1,
    )
    return Diffusion(model), (torch.randn(2, 4, 8, 8), torch.randn(2, 5, 8), torch.tensor([3.0, 7.0]))


def conditional_unet():
    model = diffusers.UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=8,
        attention_head_dim=2,
        norm_num_groups=4,
    )
    return Diffusion(model), (torch.randn(2, 4, 8, 8), torch.tensor([3, 7]), torch.randn(2, 5, 8))


def v_jepa():
    config = transformers.VJEPA2Config(
        patch_size=8,
        crop_size=16,
        frames_per_clip=4,
        tubelet_size=2,
        hidden_size=24,
        num_attention_heads=2,
        num_hidden_layers=2,
        mlp_ratio=2.0,
        pred_hidden_size=24,
        pred_num_attention_heads=2,
        pred_num_hidden_layers=1,
        pred_num_mask_tokens=2,
    )
    return Video(transformers.VJEPA2Model(config)), (torch.randn(1, 4, 3, 16, 16),)


MODELS = {
    "ResNet-18": pictured(tv.resnet18, 64),
    "MobileNetV2": pictured(lambda: tv.MobileNetV2(10, 0.25), 64),
    "MobileNetV3 small": pictured(lambda: tv.mobilenet_v3_small(width_mult=0.5, num_classes=10), 64),
    "EfficientNet": timmed("test_efficientnet"),
    "DenseNet": pictured(lambda: tv.DenseNet(8, (3, 3, 3, 3), 16), 64),
    "ConvNeXt": pictured(
        lambda: tv.ConvNeXt([tv.convnext.CNBlockConfig(16, 32, 3), tv.convnext.CNBlockConfig(32, None, 3)])
    ),
    "ViT": pictured(lambda: tv.VisionTransformer(32, 8, 3, 4, 64, 128)),
    "Swin": pictured(lambda: tv.SwinTransformer([4, 4], 32, [2, 2, 2, 2], [2, 4, 8, 16], [4, 4]), 64),
    "MaxViT": pictured(lambda: tv.MaxVit((64, 64), 16, 2, [16, 32], [2, 2], 8, 0.0), 64),
    "ShuffleNetV2": pictured(tv.shufflenet_v2_x0_5, 64),
    "SqueezeNet": pictured(tv.squeezenet1_1, 64),
    "MNASNet": pictured(lambda: tv.MNASNet(0.35, 10), 64),
    "VGG": pictured(vgg),
    "LR-ASPP": segmented("lraspp_mobilenet_v3_large"),
    "DeepLabV3": segmented("deeplabv3_mobilenet_v3_large"),
    "Mixer": pictured(lambda: timm.models.mlp_mixer.MlpMixer(**VISION, num_blocks=3, embed_dim=32)),
    "DeiT": pictured(lambda: timm.models.deit.VisionTransformerDistilled(**VISION, embed_dim=32, depth=3, num_heads=4)),
    "RegNetY": pictured(regnet, 64),
    "NFNet": timmed("test_nfnet"),
    "BEiT": pictured(lambda: timm.models.beit.Beit(**VISION, embed_dim=32, depth=3, num_heads=4)),
    "CaiT": pictured(lambda: timm.models.cait.Cait(**VISION, embed_dim=32, depth=3, num_heads=4)),
    "CoAtNet": timmed("test_coatnet", img_size=64),
    "ConvNeXtV2": timmed("test_convnext2"),
    "MambaOut": timmed("test_mambaout"),
    "GhostNet": timmed("ghostnet_050"),
    "BERT": text("Bert"),
    "RoBERTa": text("Roberta", max_position_embeddings=18),
    "DistilBERT": text("DistilBert", dim=32, n_layers=3, n_heads=4, hidden_dim=64),
    "ALBERT": text("Albert", embedding_size=16),
    "ELECTRA": text("Electra", embedding_size=32),
    "DeBERTaV2": text("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "GPT-2": text("GPT2", n_embd=32, n_layer=3, n_head=4, n_positions=16),
    "GPT-NeoX": text("GPTNeoX"),
    "Llama": text("Llama", num_key_value_heads=2),
    "Mistral": text("Mistral", num_key_value_heads=2, sliding_window=4),
    "Qwen2": text("Qwen2", num_key_value_heads=2),
    "Gemma": text("Gemma", num_key_value_heads=2, head_dim=8, pad_token_id=0),
    "Phi": text("Phi"),
    "OPT": text("OPT", ffn_dim=64, word_embed_proj_dim=32),
    "BLOOM": text("Bloom", n_layer=3, n_head=4),
    "Mamba": text("Mamba", state_size=4),
    "T5": t5,
    "BART": bart,
    "Whisper": whisper,
    "Wav2Vec2": wav2vec2,
    "CLIP": clip,
    "ViT-MAE": vit_mae,
    "SegFormer": seen(
        "Segformer",
        64,
        "ForSemanticSegmentation",
        depths=[1, 2, 1, 1],
        hidden_sizes=[8, 16, 32, 32],
        decoder_hidden_size=16,
        num_attention_heads=[1, 2, 4, 4],
    ),
    "DINOv2": seen("Dinov2", **PICTURES, hidden_size=32, num_hidden_layers=3, num_attention_heads=4),
    "Qwen3": text("Qwen3", num_key_value_heads=2, head_dim=8),
    "Qwen3-MoE": text("Qwen3Moe", **GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
    "OLMoE": text("Olmoe", num_key_value_heads=2, num_experts=4, num_experts_per_tok=2),
    "GPT-OSS": text(
        "GptOss",
        **GROUPED,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "GLM-4": text("Glm4", **GROUPED, pad_token_id=0),
    "Cohere2": text("Cohere2", **GROUPED, sliding_window=4),
    "ModernBERT": text("ModernBert", **SPECIAL, local_attention=4),
    "EuroBERT": text("EuroBert", **GROUPED, pad_token_id=0),
    "Hunyuan": text("HunYuanDenseV1", **GROUPED, pad_token_id=0),
    "ERNIE 4.5": text("Ernie4_5", **GROUPED),
    "LFM2": text("Lfm2", num_key_value_heads=2, layer_types=["conv", "full_attention", "conv"], conv_L_cache=3),
    "NanoChat": text("NanoChat", **GROUPED, pad_token_id=0),
    "EXAONE 4": text("Exaone4", **GROUPED, sliding_window=4, sliding_window_pattern=3, pad_token_id=0),
    "Ministral": text("Ministral", **GROUPED, sliding_window=4, pad_token_id=0),
    "Helium": text("Helium", **GROUPED, pad_token_id=0),
    "SigLIP": seen("SiglipVision", **PICTURES, **SIZES),
    "Seed-OSS": text("SeedOss", **GROUPED, attention_dropout=0.0, residual_dropout=0.0, pad_token_id=0),
    "GLM-4-MoE": text(
        "Glm4Moe",
        **GROUPED,
        n_routed_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        first_k_dense_replace=1,
        pad_token_id=0,
    ),
    "VaultGemma": text("VaultGemma", **GROUPED, sliding_window=4, query_pre_attn_scalar=8, pad_token_id=0),
    "Ministral 3": text("Ministral3", **GROUPED, pad_token_id=0),
    "DINOv3": seen("DINOv3ViT", **PICTURES, **SIZES, pos_embed_rescale=None),
    "Gemma 4": text(
        "Gemma4Text",
        **GROUPED,
        global_head_dim=8,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "full_attention"],
        hidden_size_per_layer_input=8,
        vocab_size_per_layer_input=50,
    ),
    "Apertus": text("Apertus", **GROUPED, pad_token_id=0),
    "AFMoE": text(
        "Afmoe",
        **GROUPED,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        num_dense_layers=1,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "Doge": text("Doge", num_key_value_heads=2, pad_token_id=0),
    "Falcon-H1": text(
        "FalconH1",
        **GROUPED,
        mamba_d_ssm=32,
        mamba_n_heads=4,
        mamba_d_head=8,
        mamba_d_state=4,
        mamba_n_groups=1,
        mamba_chunk_size=4,
        pad_token_id=0,
    ),
    "CWM": text(
        "Cwm",
        **GROUPED,
        pad_token_id=0,
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "MiniMax": text(
        "MiniMax",
        **GROUPED,
        pad_token_id=0,
        num_local_experts=4,
        num_experts_per_tok=2,
        block_size=4,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
    ),
    "Mellum": text("Mellum", **GROUPED, pad_token_id=0),
    "Jais 2": text("Jais2", **GROUPED, pad_token_id=0, eos_token_id=2),
    "V-JEPA 2": v_jepa,
    "SD3": stable_diffusion,
    "Sana": sana,
    "conditional U-Net": conditional_unet,
    "StarNet": timmed("starnet_s050"),
    "SwiftFormer": timmed("swiftformer_xs"),
    "GraphSAGE": graph(graphs.SAGEConv),
    "GATv2": graph(graphs.GATv2Conv, add_self_loops=False),
    "graph transformer": graph(graphs.TransformerConv),
    "GIN": graph(perceptron),
    "GENConv": graph(graphs.GENConv, learn_t=True),
    "ChebConv": graph(graphs.ChebConv, K=3),
    "ResGatedGraph": graph(graphs.ResGatedGraphConv),
    "EGConv": graph(graphs.EGConv, num_heads=4, num_bases=2, add_self_loops=False),
    "LSTM": lambda: (Recurrent(torch.nn.LSTM), (torch.randn(2, 6, 8),)),
    "GRU": lambda: (Recurrent(torch.nn.GRU), (torch.randn(2, 6, 8),)),
}


def written_in(name):
    """Return the files that define the classes of a model, without PyTorch's own layers where there are others."""
    kinds = {type(module) for module in MODELS[name]()[0].modules()}
    files = {inspect.getsourcefile(kind): kind.__module__ for kind in kinds}
    own = [file for file, module in files.items() if module.partition(".")[0] not in ("torch", __name__)]
    return own or [file for file, module in files.items() if module.startswith("torch.nn.modules.rnn")]


# models that compute in float32 whatever their dtype is: norms, angles and slopes of positions, and the slope of
# PyTorch's hardsigmoid
SINGLE = (
    "Qwen3",
    "Qwen3-MoE",
    "OLMoE",
    "GPT-OSS",
    "GLM-4",
    "Cohere2",
    "ModernBERT",
    "EuroBERT",
    "Hunyuan",
    "ERNIE 4.5",
    "LFM2",
    "NanoChat",
    "EXAONE 4",
    "Ministral",
    "Helium",
    "Seed-OSS",
    "GLM-4-MoE",
    "VaultGemma",
    "Ministral 3",
    "Llama",
    "Mistral",
    "Qwen2",
    "Gemma",
    "Phi",
    "BLOOM",
    "Mamba",
    "T5",
    "MobileNetV3 small",
    "GhostNet",
    "LR-ASPP",
    "DeepLabV3",
    "CWM",
    "MiniMax",
    "Mellum",
    "Jais 2",
    "SD3",
    "Sana",
    "conditional U-Net",
)

# those of which a float64 version is to take these steps in float64 too
LIFTED = ("Gemma 4", "Apertus", "AFMoE", "Doge", "Falcon-H1")
NATIVE = torch.Tensor.to, torch.Tensor.float, torch.nn.functional.softmax


def wider(value):
    return torch.float64 if value is torch.float32 else value


def lift(is_lifted):
    """Let what asks for float32 have float64, or float32 again."""
    to, _, softmax = torch.Tensor.to, torch.Tensor.float, torch.nn.functional.softmax = NATIVE
    if is_lifted:
        torch.Tensor.to = lambda x, *args, **named: to(
            x, *map(wider, args), **{name: wider(value) for name, value in named.items()}
        )
        torch.Tensor.float = torch.Tensor.double
        torch.nn.functional.softmax = lambda x, dim, dtype=None: softmax(x, dim, dtype=wider(dtype))


def made(name, dtype):
    """Return a model without dropout, whose layers all matter, and its inputs."""
    lift(name in LIFTED and dtype == "float64")
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    dtype = getattr(torch, dtype)
    model, inputs = model.to(dtype), tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    for module in model.modules():
        for rate in ("p", "drop_prob", "dropout", "dropout_prob", "attention_dropout", "dropout_rate", "drop_rate"):
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
        for _ in norms[:1]:
            model.train()(*inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model.eval(), inputs
